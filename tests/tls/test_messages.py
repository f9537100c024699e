# SPDX-License-Identifier: Apache-2.0
# Messages between nodes: of each verb one is sent to a node without TLS, with certificates that are none of a node of the
# cluster, with another cluster's id, and as a node of the cluster would. Only the last one is taken and gets its answer. And
# to a node without TLS that demands the cluster's secret.
import ctypes
import hmac
import json
import os
import re
import socket
import ssl
import struct
import time
import uuid
from pathlib import Path

import pytest
from node import Node, certificates, wait_until
from test_nodes import encrypted

SERVER, STRANGER = "127.0.63.11", "127.0.63.12"
OPEN = {"kJoin", "kIdentify"}  # who has a certificate of the cluster may ask these before it has joined
REQUEST, REPLY, ERROR_REPLY = 0, 2, 3
PREFACE = b"TETRAD\x00\x01"
ENVELOPE = struct.Struct(">BBBB16s16s16sIIQI")

xxhash = ctypes.CDLL("libxxhash.so.0")
xxhash.XXH3_64bits.restype = ctypes.c_uint64
xxhash.XXH3_64bits.argtypes = [ctypes.c_char_p, ctypes.c_size_t]


def verbs():
    """Name and number of each that the program knows."""
    text = (Path(__file__).resolve().parents[2] / "replication/rpc/verbs.h").read_text()
    found = re.findall(r"\b(k\w+)\s*=\s*(\d+)", re.search(r"enum class Verb.*?{(.*?)};", text, re.S)[1])
    assert len(found) > 40
    return {name: int(number) for name, number in found}


def message(verb, cluster_id):
    """A request without a body, as it travels; its number is the verb's."""
    endpoint = b"%s:7000" % STRANGER.encode()
    said = ENVELOPE.pack(1, REQUEST, verb, 0, cluster_id.bytes, uuid.uuid5(uuid.NAMESPACE_OID, "stranger").bytes, bytes(16),
                         0, 0, verb, 20_000_000) + bytes([len(endpoint)]) + endpoint
    return struct.pack(">IQ", len(said), xxhash.XXH3_64bits(said, len(said))) + said


class Listener:
    """Where the answers come: the node makes connections of its own for them."""

    def __init__(self, context):
        self.context, self.answers, self.buffers = context, {}, []
        self.socket = socket.create_server((STRANGER, 7000))
        self.socket.settimeout(0.01)

    def take(self):
        """What has come since; answers by the number of their request: their kind, and what is in them."""
        try:
            plain, _ = self.socket.accept()
            plain.settimeout(5)
            tls = self.context.wrap_socket(plain, server_side=True)
            tls.settimeout(0.01)
            self.buffers.append([tls, b""])
        except (TimeoutError, OSError):
            pass
        for entry in self.buffers:
            try:
                more = entry[0].recv(65536)
            except (TimeoutError, OSError):
                continue
            entry[1] = self.read(entry[1] + more)

    def read(self, data):
        if data.startswith(PREFACE):
            data = data[len(PREFACE):]
        while len(data) >= 12 and len(data) - 12 >= struct.unpack_from(">I", data)[0]:
            size = struct.unpack_from(">I", data)[0]
            said, data = data[12:12 + size], data[12 + size:]
            _, kind, verb, _, _, _, _, _, _, number, _ = ENVELOPE.unpack_from(said)
            if kind in (REPLY, ERROR_REPLY) and number == verb:
                self.answers[number] = kind, said[ENVELOPE.size + 1 + said[ENVELOPE.size]:]
        return data


@pytest.fixture(scope="module")
def top(tmp_path_factory):
    return tmp_path_factory.mktemp("messages")


@pytest.fixture(scope="module")
def ours(top):
    return certificates(top / "ours", SERVER, STRANGER, "--client", "alice")


@pytest.fixture(scope="module")
def theirs(top):
    return certificates(top / "theirs", STRANGER)


@pytest.fixture
def node(top, ours):
    node = Node(top, SERVER, *encrypted(ours, SERVER), "--found")
    yield node
    node.stop()


def context_of(authority, folder, name, purpose=ssl.Purpose.SERVER_AUTH):
    context = ssl.create_default_context(purpose, cafile=authority / "ca.pem")
    if name:
        context.load_cert_chain(folder / (name + ".pem"), folder / (name + "-key.pem"))
    return context


def is_ended(said, context):
    """Whether the node ends the connection on which this is said, without a byte of an answer to it."""
    try:
        with socket.create_connection((SERVER, 7000), timeout=10) as one:
            if context:
                one = context.wrap_socket(one, server_hostname=SERVER)
            one.sendall(PREFACE + said)
            return not one.recv(1) or context is None
    except TimeoutError:
        return False
    except OSError:
        return True


def taken(node):
    return node.metric("tetrad_replication_messages_received_total")


def test_no_message_of_a_stranger_is_taken(node, ours, theirs):
    cluster = uuid.UUID(json.loads(node.ask("/describe-cluster"))["cluster_id"])
    listener = Listener(context_of(ours, ours, STRANGER, ssl.Purpose.CLIENT_AUTH))
    before = taken(node)
    wrong = {"without TLS": None, "without a certificate": context_of(ours, None, None),
             "with a client's certificate": context_of(ours, ours, "alice"),
             "with another cluster's certificate": context_of(ours, theirs, STRANGER)}
    for how, context in wrong.items():
        for name, verb in verbs().items():
            assert is_ended(message(verb, cluster), context), "%s %s" % (name, how)
    listener.take()
    assert taken(node) == before and not listener.answers and not listener.buffers
    listener.socket.close()


@pytest.mark.parametrize("member", [False, True])
def test_who_has_the_certificate_needs_the_id_of_the_cluster_too(node, ours, member):
    cluster = uuid.UUID(json.loads(node.ask("/describe-cluster"))["cluster_id"])
    listener = Listener(context_of(ours, ours, STRANGER, ssl.Purpose.CLIENT_AUTH))
    with socket.create_connection((SERVER, 7000), timeout=10) as plain:
        with context_of(ours, ours, STRANGER).wrap_socket(plain, server_hostname=SERVER) as one:
            known = verbs()
            one.sendall(PREFACE + b"".join(message(verb, cluster if member else uuid.uuid4()) for verb in known.values()))

            def all_taken():
                listener.take()
                return taken(node) >= len(known)

            wait_until("its messages are taken", all_taken)
            until = time.monotonic() + 3
            while time.monotonic() < until and len(listener.answers) < len(known):
                listener.take()
    said = {name: listener.answers.get(verb, (0, b""))[1] for name, verb in known.items()}
    refused = {name for name, text in said.items() if b"is not that of this node" in text}
    unused = {name for name, text in said.items() if b"unknown verb" in text}
    if member:
        assert not refused
        assert sum(bool(text) for text in said.values()) - len(unused) > 25, said  # some are one-way
    else:
        assert set(known) - refused - unused == OPEN
    assert node.process.poll() is None
    listener.socket.close()


def test_without_tls_none_is_taken_before_the_secret_is_shown(top):
    secret = top / "secret"
    secret.write_text("the secret of our cluster\n")
    secret.chmod(0o600)
    node = Node(top, SERVER, "--cluster-secret-file", secret, "--found")
    try:
        cluster = uuid.UUID(json.loads(node.ask("/describe-cluster"))["cluster_id"])
        before = taken(node)
        greeting = b"TETRAD\x80\x01" + os.urandom(32)
        for how, first in (("without a proof", PREFACE), ("with a wrong one", greeting + os.urandom(32) + PREFACE)):
            for name, verb in verbs().items():
                with socket.create_connection((SERVER, 7000), timeout=10) as one:
                    try:
                        one.sendall(first + message(verb, cluster))
                        while one.recv(1000):
                            pass  # its own proof, and why it ends
                    except ConnectionError:
                        pass
                assert taken(node) == before, "%s %s" % (name, how)
        with socket.create_connection((SERVER, 7000), timeout=10) as one:
            one.sendall(greeting)
            challenge = one.recv(33, socket.MSG_WAITALL)
            one.sendall(hmac.digest(b"the secret of our cluster", b"tetrad opener" + challenge[1:] + greeting[8:], "sha256"))
            assert one.recv(33, socket.MSG_WAITALL)[:1] == b"\x02"
            one.sendall(PREFACE + b"".join(message(verb, cluster) for verb in verbs().values()))
            wait_until("with the right one they are", lambda: taken(node) == before + len(verbs()))
    finally:
        node.stop()
