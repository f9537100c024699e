# SPDX-License-Identifier: Apache-2.0
# TLS between clients and a node, and what goes wrong with it.
import os
import re
import resource
import shutil
import socket
import ssl
import subprocess
import time
import urllib.request

import pytest
from cassandra import Unauthorized
from cassandra.auth import PlainTextAuthProvider
from cassandra.cluster import Cluster, NoHostAvailable
from node import Node, certificates, check_config, ended_with, signed_by, tetractl, wait_until


@pytest.fixture(scope="module")
def top(tmp_path_factory):
    return tmp_path_factory.mktemp("tls")


@pytest.fixture(scope="module")
def ours(top):
    return certificates(top / "ours", "127.0.37.41,localhost", "127.0.37.42,localhost", "--client", "alice", "--client", "bob")


@pytest.fixture(scope="module")
def theirs(top):
    return certificates(top / "theirs", "127.0.37.41,localhost", "--client", "alice")


def server_options(folder, name="127.0.37.41", ca=False):
    options = ["--client-encryption-enabled", "--client-encryption-certificate-file", folder / (name + ".pem"),
               "--client-encryption-key-file", folder / (name + "-key.pem")]
    return options + (["--client-encryption-ca-file", folder / "ca.pem"] if ca else [])


@pytest.fixture
def start(top):
    nodes = []

    def run(*options, address="127.0.37.41"):
        nodes.append(Node(top, address, *options))
        return nodes[-1]

    yield run
    for node in nodes:
        node.stop()


def trusting(folder, client=None, version=None):
    context = ssl.create_default_context(cafile=folder / "ca.pem")
    if client:
        context.load_cert_chain(folder / (client + ".pem"), folder / (client + "-key.pem"))
    if version:
        context.maximum_version = version
    return context


def answer_of(address, context=None, protocol_version=5):
    """The release version, by the driver; without a context it speaks no TLS."""
    options = {"ssl_context": context, "ssl_options": {"server_hostname": address}} if context else {}
    cluster = Cluster([address], protocol_version=protocol_version, connect_timeout=10, **options)
    try:
        return cluster.connect().execute("SELECT release_version FROM system.local").one()[0]
    finally:
        cluster.shutdown()


def refusal_of(address, context=None):
    with pytest.raises(NoHostAvailable) as refused:
        answer_of(address, context)
    return str(refused.value)


def serial_of(address, context):
    with socket.create_connection((address, 9042), timeout=10) as plain:
        with context.wrap_socket(plain, server_hostname=address) as tls:
            return tls.getpeercert()["serialNumber"]


def test_files_that_are_wrong_are_named_at_the_start(top, ours, theirs):
    certificate, key = ours / "127.0.37.41.pem", ours / "127.0.37.41-key.pem"
    on = "--client-encryption-enabled"
    give = lambda certificate, key: [on, "--client-encryption-certificate-file", certificate, "--client-encryption-key-file", key]
    assert "client_encryption_certificate_file: a file is needed" in ended_with(top, on)
    assert "client_encryption_key_file: a file is needed" in ended_with(top, on, "--client-encryption-certificate-file", certificate)
    assert "cannot read %s/nothing: No such file" % top in ended_with(top, *give(top / "nothing", key))
    assert "%s holds no certificate" % key in ended_with(top, *give(key, key))
    other = theirs / "127.0.37.41-key.pem"
    assert "the key in %s is not that of the certificate in %s" % (other, certificate) in ended_with(top, *give(certificate, other))
    demand = "--client-encryption-require-client-auth"
    assert "client_encryption_ca_file: a file is needed" in ended_with(top, *give(certificate, key), demand)
    assert "without effect while client_encryption_enabled is false" in ended_with(top, demand)


def test_certificates_are_made_once_and_belong_to_their_owner(top):
    folder = top / "made"
    words = ["certificates", folder, "10.0.0.1,db1.example.com", "--client", "alice"]
    assert tetractl(*words).count("made ") == 6
    assert {path.name for path in folder.iterdir()} == {
        "ca.pem", "ca-key.pem", "10.0.0.1.pem", "10.0.0.1-key.pem", "alice.pem", "alice-key.pem"}
    assert all(path.stat().st_mode & 0o777 == 0o600 for path in folder.iterdir())
    before = {path.name: path.read_bytes() for path in folder.iterdir()}
    again = tetractl(*words, "10.0.0.2")
    assert again.count("kept ") == 2 and again.count("made ") == 2
    assert all((folder / name).read_bytes() == text for name, text in before.items())
    for wrong in ("not an address", "10.0.0.3,", "10.0.0.300", "../x", "ca"):
        tetractl("certificates", folder, wrong, fails=True)
    tetractl("certificates", folder, "--client", "a/b", fails=True)
    (folder / "ca-key.pem").write_text("nothing\n")
    assert "are no certificate and its key" in tetractl("certificates", folder, "10.0.0.4", fails=True)
    assert not (folder / "10.0.0.4.pem").exists()


def test_drivers_are_served_in_both_versions_of_tls(start, ours):
    node = start(*server_options(ours))
    for version in (ssl.TLSVersion.TLSv1_2, ssl.TLSVersion.TLSv1_3):
        for protocol in (3, 4, 5):
            assert answer_of(node.address, trusting(ours, version=version), protocol) == "5.0.0"
    assert node.metric("tetrad_server_tls_handshakes_done_total") >= 6
    old = trusting(ours, version=ssl.TLSVersion.TLSv1_1)
    old.minimum_version = ssl.TLSVersion.TLSv1
    old.set_ciphers("DEFAULT:@SECLEVEL=0")
    refusal_of(node.address, old)
    node.expect_log("client=127.", "the peer speaks neither TLS 1.2 nor 1.3")


def test_large_requests_and_answers_pass(start, ours):
    node = start(*server_options(ours))
    cluster = Cluster([node.address], ssl_context=trusting(ours), ssl_options={"server_hostname": node.address})
    session = cluster.connect()
    session.execute("CREATE KEYSPACE k WITH replication = {'class': 'SimpleStrategy', 'replication_factor': 1}")
    session.execute("CREATE TABLE k.t (id int PRIMARY KEY, b blob)")
    values = {number: os.urandom(700_000) for number in range(8)}
    insert = session.prepare("INSERT INTO k.t (id, b) VALUES (?, ?)")
    for pending in [session.execute_async(insert, item) for item in values.items()]:
        pending.result()
    assert {row.id: row.b for row in session.execute("SELECT * FROM k.t")} == values
    cluster.shutdown()


def test_who_speaks_the_wrong_way_is_told_and_logged(start, ours, theirs):
    node = start(*server_options(ours))
    assert "This port takes TLS only" in refusal_of(node.address)
    node.expect_log("client=127.", "refused, it speaks without TLS")
    assert "CERTIFICATE_VERIFY_FAILED" in refusal_of(node.address, trusting(theirs))
    node.expect_log("client=127.", "TLS handshake failed: the peer refuses our certificate: its authority is unknown there")
    plain = start(address="127.0.37.42")
    assert "WRONG_VERSION_NUMBER" in refusal_of(plain.address, trusting(ours))
    plain.expect_log("client=127.", "refused, it speaks TLS, which this port does not (client_encryption_enabled)")


def test_plain_and_tls_on_one_port(start, ours):
    node = start(*server_options(ours), "--client-encryption-optional")
    for protocol in (3, 5):
        assert answer_of(node.address, None, protocol) == "5.0.0"
        assert answer_of(node.address, trusting(ours), protocol) == "5.0.0"


def test_certificates_of_clients(start, ours, theirs):
    node = start(*server_options(ours, ca=True), "--client-encryption-require-client-auth")
    assert answer_of(node.address, trusting(ours, "alice")) == "5.0.0"
    refusal_of(node.address, trusting(ours))
    node.expect_log("TLS handshake failed: the peer has no certificate, which is demanded here")
    stranger = trusting(ours)
    stranger.load_cert_chain(theirs / "alice.pem", theirs / "alice-key.pem")
    refusal_of(node.address, stranger)
    node.expect_log("the certificate of the peer is refused: unable to get local issuer certificate", "CN=alice", "Tetrad authority")


def test_names_that_a_renewed_certificate_lacks_are_told(tmp_path):
    folder = certificates(tmp_path / "renewed", "127.0.37.41,node.example,::1,127.0.37.42")
    said = tetractl("certificates", folder, "127.0.37.41,127.0.37.42", "--renew")
    lost = [line for line in said.splitlines() if "is not good for" in line]
    path = folder / "127.0.37.41.pem"
    assert lost == ["%s is not good for %s any more: say all names of a node, with commas" % (path, name) for name in ("node.example", "::1")]
    strict = ["openssl", "verify", "-x509_strict", "-CAfile", folder / "ca.pem", path]
    assert subprocess.run(strict, capture_output=True, text=True).returncode == 0
    issuer = subprocess.run(["openssl", "x509", "-noout", "-ext", "authorityKeyIdentifier", "-in", folder / "ca.pem"], capture_output=True, text=True)
    assert re.search("([0-9A-F]{2}:){19}", issuer.stdout), issuer.stdout  # Python 3.13 wants the authority's own, too
    assert "is not good for" not in tetractl("certificates", folder, "127.0.37.41,127.0.37.42,more.example", "--renew")


def test_certificates_are_read_again(top, start):
    folder = certificates(top / "renewed", "127.0.37.41")
    node = start(*server_options(folder))
    context = trusting(folder)
    first = serial_of(node.address, context)
    with socket.create_connection((node.address, 9042)) as plain, context.wrap_socket(plain, server_hostname=node.address) as kept:
        assert "unchanged" in tetractl("-h", node.address, "reload-certificates")
        certificates(folder, "127.0.37.41", "--renew")
        assert "clients: read anew (subject CN=127.0.37.41)" in tetractl("-h", node.address, "reload-certificates")
        second = serial_of(node.address, context)
        assert second != first
        (folder / "127.0.37.41.pem").write_text("nothing\n")
        assert "holds no certificate" in tetractl("-h", node.address, "reload-certificates", fails=True)
        node.expect_log("certificates are not taken, those from before hold")
        with urllib.request.urlopen("http://%s:9180/health" % node.address, timeout=5) as health:
            assert b"certificates of clients are not taken, those from before hold: " in health.read()
        assert serial_of(node.address, context) == second
        certificates(folder, "127.0.37.41", "--renew")
        # By itself.
        wait_until("a new certificate", lambda: serial_of(node.address, context) not in (first, second))
        kept.sendall(bytes.fromhex("050000000500000000"))  # OPTIONS
        assert kept.recv(9)[4] == 6  # SUPPORTED
    assert node.metric("tetrad_server_certificate_expiry_seconds") > time.time() + 800 * 86400


def test_certificates_that_clients_refuse_are_not_taken(top, start):
    folder = certificates(top / "dated", "127.0.37.41")
    used, good = folder / "used.pem", folder / "127.0.37.41.pem"
    shutil.copy(good, used)
    shutil.copy(folder / "127.0.37.41-key.pem", folder / "used-key.pem")
    options = server_options(folder, "used")
    assert check_config(top, *options) == (0, "ok\n")
    node = start(*options)
    context = trusting(folder)
    first = serial_of(node.address, context)

    def put(pair):
        for path, name in zip(pair, ("used.pem", "used-key.pem")):
            shutil.copy(path, folder / (name + ".next"))
        for name in ("used-key.pem", "used.pem"):
            os.replace(folder / (name + ".next"), folder / name)

    for pair, why in ((signed_by(folder, "old", "IP:127.0.37.41", days=0), "used.pem: the certificate has expired, on 20"),
                      (signed_by(folder, "mail", "IP:127.0.37.41", usage="clientAuth"), "used.pem: the certificate is not one for servers")):
        put(pair)
        said = tetractl("-h", node.address, "reload-certificates", fails=True)
        assert why in said and "the certificate from before goes on to hold" in said
        assert serial_of(node.address, context) == first
        code, said = check_config(top, *options)
        assert code == 2 and "client_encryption: " in said and why in said
    # A start does not fail for it, and says it all the same.
    put((folder / "old.pem", folder / "old-key.pem"))
    node.stop()
    node.start()
    node.expect_log("the certificate has expired, peers refuse it of=clients")
    assert "it has expired, peers refuse it" in tetractl("-h", node.address, "reload-certificates", fails=True)
    put((good, folder / "127.0.37.41-key.pem"))
    assert "clients: read anew" in tetractl("-h", node.address, "reload-certificates")
    assert serial_of(node.address, context) == first


def client_hello(context, address):
    """The first bytes that a TLS client sends."""
    incoming, outgoing = ssl.MemoryBIO(), ssl.MemoryBIO()
    client = context.wrap_bio(incoming, outgoing, server_hostname=address)
    with pytest.raises(ssl.SSLWantReadError):
        client.do_handshake()
    return outgoing.read()


def test_those_who_never_finish_the_handshake_cost_little(start, ours):
    node = start(*server_options(ours))
    context = trusting(ours)
    assert answer_of(node.address, context) == "5.0.0"
    hello = client_hello(context, node.address)
    most = resource.getrlimit(resource.RLIMIT_NOFILE)[1]
    resource.setrlimit(resource.RLIMIT_NOFILE, (most, most))
    before = node.resident_mb()
    silent = []
    for number in range(10_000):
        one = socket.create_connection((node.address, 9042))
        silent.append(one)
        if number % 3 == 1:
            one.sendall(hello[: len(hello) // 2])
        elif number % 3 == 2:
            one.sendall(hello)
    wait_until("their handshakes", lambda: node.metric("tetrad_server_tls_handshakes_begun_total") > 512)

    def is_served():  # a flood that goes on may end a handshake that is slower than 512 others
        try:
            return answer_of(node.address, context) == "5.0.0"
        except NoHostAvailable:
            return False

    wait_until("a client that speaks TLS is served", is_served)
    print("10,000 connections: %.0f MB more" % (node.resident_mb() - before))
    assert node.resident_mb() - before < 150
    # Of those that have begun at most 512 are kept.
    wait_until("the bound", lambda: node.metric("tetrad_server_connections_open") <= 3334 + 512)
    node.expect_log("too many", "under way")
    wait_until("their end", lambda: node.metric("tetrad_server_connections_open") == 0, 20)
    for one in silent:
        one.close()


def test_what_only_looks_like_tls_is_refused(start, ours):
    node = start(*server_options(ours))
    context = trusting(ours)
    hello = client_hello(context, node.address)
    for number in range(300):
        with socket.create_connection((node.address, 9042), timeout=10) as one:
            bad = bytearray(hello)
            if number % 3 == 0:
                bad = bytearray(b"\x16") + os.urandom(500)
            elif number % 3 == 1:
                bad[1 + number % (len(bad) - 1)] ^= 1 + number % 255
            else:
                bad = bad[: 6 + number % (len(bad) - 6)] + os.urandom(100)
            try:
                one.sendall(bad)
                one.shutdown(socket.SHUT_WR)
                while one.recv(4096):
                    pass
            except ConnectionResetError:
                pass
    assert answer_of(node.address, context) == "5.0.0"
    assert node.process.poll() is None
    wait_until("their end", lambda: node.metric("tetrad_server_connections_open") == 0, 20)


def test_the_admin_port_speaks_https_when_told_to(start, top, ours, theirs, monkeypatch):
    monkeypatch.setattr(Node, "context", ssl.create_default_context(cafile=ours / "ca.pem"))
    node = start(*server_options(ours), "--admin-encryption-enabled")
    ask = ["-h", node.address]
    assert "serving" in tetractl(*ask, "--ca-file", ours / "ca.pem", "status")
    assert "level: warn" in tetractl(*ask, "--ca-file", ours / "ca.pem", "log-level", "warn")
    assert "this port takes HTTPS only" in tetractl(*ask, "status", fails=True)
    assert "has a certificate of an authority that is not in %s; name the ca.pem" % (theirs / "ca.pem") in tetractl(
        *ask, "--ca-file", theirs / "ca.pem", "status", fails=True)
    assert "cannot read" in tetractl(*ask, "--ca-file", ours / "nothing", "status", fails=True)
    misnamed = start(*server_options(ours, "127.0.37.42"), "--admin-encryption-enabled", address="127.0.37.43")
    assert ("127.0.37.43:9180 has a certificate that is not good for 127.0.37.43, but for: 127.0.37.42, localhost; say one of these" in
            tetractl("-h", misnamed.address, "--ca-file", ours / "ca.pem", "status", fails=True))
    old, key = signed_by(ours, "old", "IP:127.0.37.44", days=0)
    expired = start("--client-encryption-enabled", "--client-encryption-certificate-file", old, "--client-encryption-key-file", key,
                    "--admin-encryption-enabled", address="127.0.37.44")
    assert "127.0.37.44:9180 has a certificate that has expired, or the clock" in tetractl(
        "-h", expired.address, "--ca-file", ours / "ca.pem", "status", fails=True)
    plain = start(address="127.0.37.42")
    assert ("127.0.37.42:9180 answers without TLS, as an admin port that takes HTTP only: leave out --ca-file (TETRAD_CA_FILE), or set admin_encryption_enabled" in
            tetractl("-h", plain.address, "--ca-file", ours / "ca.pem", "status", fails=True))
    # Who begins and does not go on keeps nobody out.
    silent = [socket.create_connection((node.address, 9180)) for _ in range(100)]
    assert "serving" in tetractl(*ask, "--ca-file", ours / "ca.pem", "status")
    for one in silent:
        one.close()
    assert "tetrad_build_info" in node.ask("/metrics")


@pytest.fixture
def start_with_identities(start, ours, monkeypatch):
    """Starts a node where `identity` of a certificate may be a login; gives its superuser and what opens other sessions."""
    monkeypatch.setenv("TETRAD_SUPERUSER_PASSWORD", "made")
    clusters = []

    def run(identity):
        node = start(*server_options(ours, ca=True), "--authenticator", "PasswordAuthenticator", "--init-superuser", "root",
                     "--client-certificate-identity", identity)

        def session(client=None, password=None):
            cluster = Cluster([node.address], ssl_context=trusting(ours, client), ssl_options={"server_hostname": node.address},
                              auth_provider=PlainTextAuthProvider(*password) if password else None)
            clusters.append(cluster)
            return cluster.connect()

        def root():
            try:
                return session(password=("root", "made"))
            except NoHostAvailable:
                return None

        return wait_until("the superuser", root), session

    yield run
    for cluster in clusters:
        cluster.shutdown()


def role_of(session):
    """Whom the node takes it for: a role without rights lists itself."""
    [role] = {row.role for row in session.execute("LIST ROLES")}
    return role


def test_a_certificate_may_be_a_login(start_with_identities):
    admin, session = start_with_identities("common_name")
    admin.execute("CREATE ROLE alice WITH LOGIN = true")
    admin.execute("CREATE ROLE bob WITH LOGIN = false")
    # Alice has no password at all.
    alice = session("alice")
    assert role_of(alice) == "alice"
    with pytest.raises(Unauthorized, match="User alice does not have sufficient privileges"):
        alice.execute("CREATE ROLE eve")
    # Bob may not log in, and who shows no certificate needs a password.
    for client in ("bob", None):
        with pytest.raises(NoHostAvailable, match="requires authentication|AuthenticationFailed"):
            session(client)
    assert "root" in {row.role for row in session("bob", ("root", "made")).execute("LIST ROLES")}
    admin.execute("ALTER ROLE alice WITH LOGIN = false")
    with pytest.raises(Unauthorized, match="alice is not permitted to log in"):
        alice.execute("LIST ROLES")


def certificate_with_names(folder, name, names, common_name="nobody"):
    """A client's certificate with these alternative names, signed by the authority in the folder."""
    key, request, out = folder / (name + "-key.pem"), folder / (name + ".csr"), folder / (name + ".pem")
    subprocess.run(["openssl", "req", "-new", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-nodes", "-keyout", key, "-out", request,
                    "-subj", "/CN=" + common_name, "-addext", "subjectAltName=" + names, "-addext", "extendedKeyUsage=clientAuth"],
                   check=True, capture_output=True)
    subprocess.run(["openssl", "x509", "-req", "-in", request, "-CA", folder / "ca.pem", "-CAkey", folder / "ca-key.pem", "-CAcreateserial",
                    "-days", "9", "-copy_extensions", "copy", "-out", out], check=True, capture_output=True)


URI, EMAIL, DNS = "spiffe://tetrad.test/app", "ann@tetrad.test", "app1.tetrad.test"


def test_an_alternative_name_of_a_certificate_may_be_a_login(start_with_identities, ours):
    admin, session = start_with_identities("alternative_name")
    for role in (URI, EMAIL, DNS, "alice", "10.1.2.3"):
        admin.execute("CREATE ROLE '%s' WITH LOGIN = true" % role)
    certificate_with_names(ours, "uri", "URI:" + URI)
    certificate_with_names(ours, "email", "email:" + EMAIL)
    certificate_with_names(ours, "dns", "DNS:" + DNS)
    certificate_with_names(ours, "all", "DNS:%s,email:%s,URI:spiffe://tetrad.test/none,URI:%s" % (DNS, EMAIL, URI))
    for client, role in (("uri", URI), ("email", EMAIL), ("dns", DNS)):
        assert role_of(session(client)) == role
    # URIs come before e-mail addresses and these before DNS names, as far as they are roles that may log in.
    opened = session("all")
    assert role_of(opened) == URI
    admin.execute("ALTER ROLE '%s' WITH LOGIN = false" % URI)
    assert role_of(session("all")) == EMAIL
    with pytest.raises(Unauthorized, match="is not permitted to log in"):
        opened.execute("LIST ROLES")
    admin.execute("DROP ROLE '%s'" % EMAIL)
    assert role_of(session("all")) == DNS


def test_no_other_name_of_a_certificate_is_a_login(start_with_identities, ours, theirs):
    admin, session = start_with_identities("alternative_name")
    for role in (URI, DNS, "alice", "10.1.2.3"):
        admin.execute("CREATE ROLE '%s' WITH LOGIN = true" % role)
    certificate_with_names(ours, "address", "IP:10.1.2.3", common_name="alice")
    certificate_with_names(ours, "case", "DNS:%s" % DNS.upper())
    certificate_with_names(ours, "part", "URI:%s/more,DNS:more.%s" % (URI, DNS))
    # A name of a CA that is careless: what stands behind the NUL is seen by those only who count bytes.
    name = (DNS + "\0.evil.test").encode()
    certificate_with_names(ours, "nul", "DER:30:%02X:82:%02X:%s" % (len(name) + 2, len(name), name.hex(":")))
    for client in ("alice", "address", "case", "part", "nul"):
        with pytest.raises(NoHostAvailable, match="requires authentication|AuthenticationFailed"):
            session(client)
        assert "root" in {row.role for row in session(client, ("root", "made")).execute("LIST ROLES")}
    # Of an authority that the node does not know.
    certificate_with_names(theirs, "stranger", "URI:" + URI)
    for suffix in (".pem", "-key.pem"):
        shutil.copy(theirs / ("stranger" + suffix), ours)
    with pytest.raises(NoHostAvailable):
        session("stranger")


def test_an_alternative_name_is_no_login_where_common_names_are(start_with_identities, ours):
    admin, session = start_with_identities("common_name")
    admin.execute("CREATE ROLE '%s' WITH LOGIN = true" % DNS)
    certificate_with_names(ours, "only", "DNS:" + DNS)
    with pytest.raises(NoHostAvailable, match="requires authentication|AuthenticationFailed"):
        session("only")


def test_identities_that_cannot_work_are_refused_at_the_start(top, ours):
    for kind in ("common_name", "alternative_name"):
        identity = ["--client-certificate-identity", kind]
        assert "while client_encryption_enabled is false" in ended_with(top, *identity)
        assert "without client_encryption_ca_file" in ended_with(top, *server_options(ours), *identity)
        assert "without authenticator" in ended_with(top, *server_options(ours, ca=True), *identity)
    assert "client_certificate_identity" in ended_with(top, *server_options(ours, ca=True), "--client-certificate-identity", "uri")
