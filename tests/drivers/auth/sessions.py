# SPDX-License-Identifier: Apache-2.0
# Sessions of roles whose password is their name.
from cassandra.auth import PlainTextAuthProvider
from cassandra.cluster import EXEC_PROFILE_DEFAULT, Cluster, ExecutionProfile
from cassandra.policies import WhiteListRoundRobinPolicy


def connect(host, user, **options):
    """A session that asks this node alone; `options` of its execution profile."""
    profile = ExecutionProfile(load_balancing_policy=WhiteListRoundRobinPolicy([host]), **options)
    return Cluster([host], auth_provider=PlainTextAuthProvider(user, user), protocol_version=5,
                   execution_profiles={EXEC_PROFILE_DEFAULT: profile}).connect()
