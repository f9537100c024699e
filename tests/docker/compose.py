#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
# Four nodes by docker/compose.yaml, four with TLS and a password by docker/compose.secure.yaml, four on ports of the host by
# docker/compose.published.yaml, used from the host by the Python driver; a node is killed and started again. Volumes, network and published address are of this test alone. Last line
# N passed, N failed. compose.py IMAGE
import json
import os
import ssl
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from cassandra import ConsistencyLevel
from cassandra.auth import PlainTextAuthProvider
from cassandra.cluster import Cluster, EXEC_PROFILE_DEFAULT, ExecutionProfile
from cassandra.policies import WhiteListRoundRobinPolicy

TOP = Path(__file__).resolve().parents[2]
PUBLISHED = "127.0.0.42"
NODES = {"node%d" % n: "172.30.42.1%d" % n for n in range(1, 5)}
results = {"passed": 0, "failed": 0}


def check(holds, what):
    results["passed" if holds else "failed"] += 1
    print("%s %s" % ("ok    " if holds else "FAILED", what), flush=True)


def run(*command, check=True):
    return subprocess.run(command, check=check, capture_output=True, text=True, timeout=300,
                          env=dict(os.environ, TETRAD_PUBLISH=PUBLISHED))


def program():
    """Compose as a plugin of docker, or the program of old; None where neither is there."""
    for command in (["docker", "compose"], ["docker-compose"]):
        try:
            if run(*command, "version", check=False).returncode == 0:
                return command
        except FileNotFoundError:
            pass
    return None


class Project:
    """The services of some compose files under names of this test, so that nobody's volumes are touched."""

    def __init__(self, command, image, folder, secure, published=False):
        self.kept = list(NODES) + (["certificates", "authority"] if secure else [])
        services = list(NODES) + (["certificates"] if secure else [])
        # A script of each node, that the first one's run leaves nothing to do for.
        scripts = folder / "scripts"
        scripts.mkdir()
        scripts.chmod(0o755)
        (scripts / "1.cql").write_text(
            "CREATE KEYSPACE IF NOT EXISTS scripted WITH replication = {'class': 'NetworkTopologyStrategy', "
            "'replication_factor': 3};\n")
        (scripts / "2.sh").write_text("cqlsh -e 'CREATE TABLE IF NOT EXISTS scripted.by_sh (k int PRIMARY KEY)'\n")
        mount = {"volumes": ["%s:/docker-entrypoint-initdb.d:ro" % scripts]}
        own = {"services": {name: dict(image=image, **(mount if name == "node2" else {})) for name in services},
               "volumes": {name: {"name": "tetrad_test_%s" % name} for name in self.kept},
               # docker-compose 1.29 takes a network's last description whole.
               "networks": {"ring": {"name": "tetrad_test_ring", "ipam": {"config": [{"subnet": "172.30.42.0/24"}]}}}}
        (folder / "own.yaml").write_text(json.dumps(own))
        files = ["compose.yaml"] + (["compose.secure.yaml"] if secure else []) + (
            ["compose.published.yaml"] if published else [])
        # The project's directory is the files' own, which relative paths in them start from.
        self.command = command + ["-p", "tetrad_test"]
        for name in files:
            self.command += ["-f", str(TOP / "docker" / name)]
        self.command += ["-f", str(folder / "own.yaml")]

    def __call__(self, *arguments, check=True):
        done = run(*self.command, *arguments, check=False)
        if check and done.returncode != 0:
            raise RuntimeError("compose %s: %s%s" % (" ".join(arguments), done.stdout[-500:], done.stderr[-1500:]))
        return done

    def inspect(self, node):
        return json.loads(run("docker", "inspect", self("ps", "-q", node).stdout.strip()).stdout)[0]

    def healthy(self, seconds=120):
        end = time.monotonic() + seconds
        waiting = list(NODES)
        while waiting and time.monotonic() < end:
            waiting = [node for node in waiting if self.inspect(node)["State"]["Health"]["Status"] != "healthy"]
        return not waiting


def connect(address, **options):
    """A session that asks the node at this address alone."""
    profile = ExecutionProfile(WhiteListRoundRobinPolicy([address]), request_timeout=30,
                               consistency_level=ConsistencyLevel.QUORUM)
    cluster = Cluster([address], execution_profiles={EXEC_PROFILE_DEFAULT: profile}, connect_timeout=30,
                      schema_metadata_enabled=False, **options)
    try:
        return cluster, cluster.connect()
    except Exception:
        cluster.shutdown()
        raise


def ask(address, statements, **options):
    """What each statement answers at the node at this address, as lists of the rows' first columns."""
    cluster, session = connect(address, **options)
    try:
        return [[row[0] for row in session.execute(statement)] for statement in statements]
    finally:
        cluster.shutdown()


def refused(address, **options):
    """Why the node at this address takes no session; empty when it takes one."""
    try:
        ask(address, [], **options)
        return ""
    except Exception as error:
        return "%s: %s" % (type(error).__name__, error)


def check_reached(project, options):
    bindings = {node: project.inspect(node)["NetworkSettings"]["Ports"] for node in NODES}
    published = sorted((node, inside, at["HostIp"], at["HostPort"]) for node in NODES
                       for inside, hosts in bindings[node].items() for at in hosts or [])
    check(published == [("node1", "9042/tcp", PUBLISHED, "9042"), ("node1", "9180/tcp", PUBLISHED, "9180")],
          "only node1 is published, on loopback: %s" % published)
    told = [ask(address, ["SELECT rpc_address FROM system.local"], **options)[0] for address in NODES.values()]
    check(told == [[address] for address in NODES.values()], "a driver reaches each node where it says it is: %s" % told)
    cluster, _ = connect(NODES["node1"], **options)
    found = sorted(host.address for host in cluster.metadata.all_hosts())
    cluster.shutdown()
    check(found == sorted(NODES.values()), "and finds them all from one: %s" % found)


def check_volumes(project):
    containers = json.loads(run("docker", "inspect", *project("ps", "-a", "-q").stdout.split()).stdout)
    used = sorted({mount["Name"] for container in containers for mount in container["Mounts"] if mount["Type"] == "volume"})
    check(used == sorted("tetrad_test_" + name for name in project.kept), "all volumes have names: %s" % used)


def check_kept(project, options):
    inserts = ["INSERT INTO made.t (k) VALUES (%d)" % k for k in range(200)]
    one, two, three = NODES["node1"], NODES["node2"], NODES["node3"]
    ask(one, ["CREATE KEYSPACE made WITH replication = {'class': 'NetworkTopologyStrategy', 'replication_factor': 3}",
              "CREATE TABLE made.t (k int PRIMARY KEY)"] + inserts[:100], **options)
    project("kill", "node3")
    ask(two, inserts[100:], **options)
    check(sorted(ask(one, ["SELECT k FROM made.t"], **options)[0]) == list(range(200)), "written and read while node3 is killed")
    project("start", "node3")
    check(project.healthy(), "started again it is healthy")
    check(sorted(ask(three, ["SELECT k FROM made.t"], **options)[0]) == list(range(200)), "and reads all")
    project("kill", "node1")
    check(sorted(ask(two, ["SELECT k FROM made.t"], **options)[0]) == list(range(200)),
          "nothing is lost when node1 is killed after it")
    project("start", "node1")
    check(project.healthy(), "all are healthy again")


def check_locked(project, folder):
    """TLS and passwords are asked for; answers with what a client needs."""
    password = project("exec", "-T", "node1", "cat", "/certificates/password").stdout.strip()
    (folder / "ca.pem").write_text(project("exec", "-T", "node1", "cat", "/certificates/ca.pem").stdout)
    tls = ssl.create_default_context(cafile=str(folder / "ca.pem"))
    address = NODES["node2"]
    user = PlainTextAuthProvider("cassandra", password)
    why = refused(address, auth_provider=user)
    check("NoHostAvailable" in why, "without TLS no client is served: %s" % why[:250])
    why = refused(address, ssl_context=ssl.create_default_context())
    check("CERTIFICATE_VERIFY_FAILED" in why or "certificate verify failed" in why, "no client that asks another authority trusts it: %s" % why[:250])
    why = refused(address, ssl_context=tls)
    check("AuthenticationFailed" in why, "with TLS none without a password: %s" % why[:250])
    why = refused(address, ssl_context=tls, auth_provider=PlainTextAuthProvider("cassandra", "cassandra"))
    check("AuthenticationFailed" in why, "nor with another password: %s" % why[:250])
    shell = project("exec", "-T", "-e", "SSL_CERTFILE=/certificates/ca.pem", "node1", "cqlsh", "--ssl", "-u", "cassandra",
                    "-p", password, "-e", "SELECT key FROM system.local", check=False)
    check(shell.returncode == 0 and "(1 rows)" in shell.stdout, "cqlsh of the image is served with both" if shell.returncode == 0 else
          "cqlsh of the image: %s" % shell.stderr[:300])
    modes = project("exec", "-T", "node1", "sh", "-c", "stat -c %a /certificates/password; ls /authority").stdout.split()
    check(modes == ["600"], "the password is for the nodes alone, the authority's key for none: %s" % modes)
    return {"ssl_context": tls, "auth_provider": user}


def check_published():
    """Each node on a port of the host, where an ordinary driver finds it from the first."""
    cluster = Cluster([PUBLISHED], connect_timeout=30)
    try:
        session = cluster.connect()
        end = time.monotonic() + 30
        while time.monotonic() < end and not all(host.is_up for host in cluster.metadata.all_hosts()):
            time.sleep(0.1)
        found = sorted((host.endpoint.address, host.endpoint.port, host.is_up) for host in cluster.metadata.all_hosts())
        check(found == [(PUBLISHED, port, True) for port in range(9042, 9046)], "a driver reaches all on the host: %s" % found)
        asked = {session.execute("SELECT listen_address FROM system.local").one()[0] for _ in range(40)}
        check(asked == set(NODES.values()), "each of them answers: %s" % sorted(asked))
    finally:
        cluster.shutdown()


def part_published(command, image):
    print("compose.yaml and compose.published.yaml:")
    with tempfile.TemporaryDirectory() as name:
        project = Project(command, image, Path(name), secure=False, published=True)
        try:
            project("down", "-v", check=False)
            project("up", "--detach", "--no-build")
            check(project.healthy(), "four nodes are healthy")
            check_published()
        except Exception as error:  # the line that counts is printed all the same
            check(False, "%s: %s" % (type(error).__name__, error))
            print(project("logs", "--tail", "20", check=False).stdout[-4000:])
        finally:
            project("down", "-v", check=False)


def part(command, image, secure):
    print("%s:" % ("compose.yaml and compose.secure.yaml" if secure else "compose.yaml"))
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        project = Project(command, image, folder, secure)
        try:
            project("down", "-v", check=False)
            start = time.monotonic()
            project("up", "--detach", "--no-build")
            check(project.healthy(), "four nodes are healthy after %.1f s" % (time.monotonic() - start))
            options = check_locked(project, folder) if secure else {}
            scripted = ask(NODES["node1"], ["SELECT table_name FROM system_schema.tables WHERE keyspace_name = 'scripted'"], **options)
            check(scripted == [["by_sh"]], "and the scripts of one of them have run: %s" % scripted)
            check_volumes(project)
            check_reached(project, options)
            check_kept(project, options)
        except Exception as error:  # the line that counts is printed all the same
            check(False, "%s: %s" % (type(error).__name__, error))
            print(project("logs", "--tail", "20", check=False).stdout[-4000:])
        finally:
            project("down", "-v", check=False)


def main(image):
    command = program()
    if command is None:
        print("skipped: four nodes by compose, plain and with TLS (no docker compose)")
    elif run("docker", "network", "inspect", "tetrad_ring", check=False).returncode == 0:
        print("skipped: four nodes by compose, plain and with TLS (a cluster of docker/compose.yaml has their addresses)")
    else:
        part(command, image, secure=False)
        part(command, image, secure=True)
        part_published(command, image)
    print("%(passed)d passed, %(failed)d failed" % results)
    return results["failed"] != 0


sys.exit(main(sys.argv[1]))
