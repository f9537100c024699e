# SPDX-License-Identifier: Apache-2.0
# What all tests of the Python drivers share: connections that are closed again, and a keyspace of their own.
#
# The same tests run with cassandra-driver and with scylla-driver, against Tetrad and against Apache Cassandra 5.0.
import os
import random
import shlex
import ssl
import subprocess
import time

import pytest
from cassandra import ConsistencyLevel
from cassandra.auth import PlainTextAuthProvider
from cassandra.cluster import EXEC_PROFILE_DEFAULT, Cluster, ExecutionProfile
from cassandra.policies import DCAwareRoundRobinPolicy, TokenAwarePolicy

HOSTS = os.environ.get("TETRAD_TEST_HOSTS", "127.0.0.1").split(",")
PORT = int(os.environ.get("TETRAD_TEST_PORT", "9042"))
USER = os.environ.get("TETRAD_TEST_USER")
TLS_CA = os.environ.get("TETRAD_TEST_TLS_CA")


def security():
    """Options of a cluster: who logs in, and whose word is taken for the servers."""
    options = {}
    if USER:
        options["auth_provider"] = PlainTextAuthProvider(USER, os.environ["TETRAD_TEST_PASSWORD"])
    if TLS_CA:
        options["ssl_context"] = ssl.create_default_context(cafile=TLS_CA)
        # The driver can be told one name for all nodes only: it is one of each node's.
        options["ssl_options"] = {"server_hostname": "localhost"}
    return options


def wrapped(plain):
    """A socket as clients use it."""
    if not TLS_CA:
        return plain
    return security()["ssl_context"].wrap_socket(plain, server_hostname="localhost")


class Connector:
    """Opens clusters and closes every one of them at the end of the test or module."""

    def __init__(self):
        self._clusters = []

    def cluster(self, hosts=None, profile=None, **options):
        options.setdefault("port", PORT)
        options.setdefault("compression", False)
        options.setdefault("control_connection_timeout", 10.0)
        options.setdefault("connect_timeout", 10)
        for name, value in security().items():
            options.setdefault(name, value)
        if profile is None:
            profile = ExecutionProfile(
                load_balancing_policy=TokenAwarePolicy(DCAwareRoundRobinPolicy()),
                consistency_level=ConsistencyLevel.QUORUM,
                request_timeout=20,
            )
        cluster = Cluster(hosts or HOSTS, execution_profiles={EXEC_PROFILE_DEFAULT: profile}, **options)
        self._clusters.append(cluster)
        return cluster

    def session(self, keyspace=None, **options):
        return self.cluster(**options).connect(keyspace)

    def close(self):
        for cluster in self._clusters:
            cluster.shutdown()


@pytest.fixture
def connector():
    connector = Connector()
    yield connector
    connector.close()


@pytest.fixture(scope="module")
def module_connector():
    connector = Connector()
    yield connector
    connector.close()


def replication_of(session):
    factor = min(4, len(session.cluster.metadata.all_hosts()))
    return "{'class': 'SimpleStrategy', 'replication_factor': %d}" % factor


def fresh_name(stem):
    return "%s_%08x" % (stem, random.getrandbits(32))


@pytest.fixture(scope="module")
def session(module_connector):
    """A session whose keyspace is its own; the keyspace goes when the module ends."""
    session = module_connector.session()
    keyspace = fresh_name("drv_python")
    session.execute("CREATE KEYSPACE %s WITH replication = %s" % (keyspace, replication_of(session)))
    session.set_keyspace(keyspace)
    yield session
    session.execute("DROP KEYSPACE IF EXISTS %s" % keyspace, timeout=60)


@pytest.fixture(scope="module")
def tetrad(session):
    """The session, where the server is Tetrad."""
    known = session.execute("SELECT table_name FROM system_virtual_schema.tables WHERE keyspace_name = 'system_tetrad'").all()
    if not known:
        pytest.skip("Tetrad only")
    return session


def wait_until(condition, seconds, what):
    deadline = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < deadline, "not within %g s: %s" % (seconds, what)
        time.sleep(0.1)


class NodeControl:
    """Kills and starts one node of the cluster under test by the commands the caller of the suite gave."""

    def __init__(self):
        self.address = os.environ.get("TETRAD_TEST_NODE")
        self._kill = os.environ.get("TETRAD_TEST_NODE_KILL")
        self._start = os.environ.get("TETRAD_TEST_NODE_START")

    def available(self):
        return bool(self.address and self._kill and self._start)

    def kill(self):
        subprocess.run(shlex.split(self._kill), check=True, timeout=60, stdout=subprocess.DEVNULL)

    def start(self):
        subprocess.run(shlex.split(self._start), check=True, timeout=300, stdout=subprocess.DEVNULL)


@pytest.fixture
def node_control():
    control = NodeControl()
    if not control.available():
        pytest.skip("no TETRAD_TEST_NODE, TETRAD_TEST_NODE_KILL and TETRAD_TEST_NODE_START")
    yield control
    control.start()  # harmless when it runs: the next test finds the whole cluster
