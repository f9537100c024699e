#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
# The image as Testcontainers uses it in the place of Cassandra's, with cqlsh inside and scripts that run once. Last line
# N passed, N failed. containers.py IMAGE
import sys
import tempfile
from pathlib import Path

from cassandra.cluster import Cluster
from cassandra.policies import DCAwareRoundRobinPolicy
from testcontainers.cassandra import CassandraContainer

results = {"passed": 0, "failed": 0}


def check(holds, what):
    results["passed" if holds else "failed"] += 1
    print("%s %s" % ("ok    " if holds else "FAILED", what))


def healthy(container):
    container.get_wrapped_container().reload()
    return container.get_wrapped_container().attrs["State"]["Health"]["Status"] == "healthy"


def cqlsh(container, statement):
    done = container.exec(["cqlsh", "-u", "cassandra", "-p", "cassandra", "-e", statement])
    return done.exit_code, done.output.decode()


def main(image, scripts):
    (scripts / "1.cql").write_text(
        "CREATE KEYSPACE made WITH replication = {'class': 'SimpleStrategy', 'replication_factor': 1};\n"
        "CREATE TABLE made.t (k int PRIMARY KEY);\nINSERT INTO made.t (k) VALUES (7);\n")
    (scripts / "2.sh").write_text('cqlsh -e "INSERT INTO made.t (k) VALUES (8)"\n')
    scripts.chmod(0o755)
    container = CassandraContainer(image)
    container.with_volume_mapping(str(scripts), "/docker-entrypoint-initdb.d", "ro")
    with container:
        policy = DCAwareRoundRobinPolicy(container.get_local_datacenter())
        with Cluster(container.get_contact_points(), load_balancing_policy=policy) as cluster:
            session = cluster.connect()
            check(session.execute("SELECT cluster_name FROM system.local").one() is not None, "a driver reaches it")
            for _ in range(100):
                if healthy(container):
                    break
                container.exec(["sleep", "0.1"])
            check(healthy(container), "it is healthy")
            check(sorted(row.k for row in session.execute("SELECT k FROM made.t")) == [7, 8], "and the scripts have run by then")
            code, output = cqlsh(container, "SELECT k FROM made.t WHERE k = 7")
            check(code == 0 and "(1 rows)" in output, "cqlsh inside it reads")
            code, output = cqlsh(container, "SELECT nonsense FROM made.t")
            check(code != 0 and "Undefined column name nonsense" in output, "and says what is wrong")


with tempfile.TemporaryDirectory() as folder:
    try:
        main(sys.argv[1], Path(folder))
    except Exception as error:  # the line that counts is printed all the same
        check(False, "%s: %s" % (type(error).__name__, error))
print("%(passed)d passed, %(failed)d failed" % results)
sys.exit(results["failed"] != 0)
