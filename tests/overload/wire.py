# SPDX-License-Identifier: Apache-2.0
"""The native protocol as raw bytes: what an honest driver would never send must be sayable."""

import os
import socket
import struct
import zlib

ERROR, STARTUP, READY, OPTIONS, SUPPORTED, QUERY, RESULT, PREPARE, EXECUTE, REGISTER, BATCH = (
    0x00, 0x01, 0x02, 0x05, 0x06, 0x07, 0x08, 0x09, 0x0A, 0x0B, 0x0D)
SERVER_ERROR, PROTOCOL, INVALID, SYNTAX, UNPREPARED, OVERLOADED, BOOTSTRAPPING = 0x0000, 0x000A, 0x2200, 0x2000, 0x2500, 0x1001, 0x1002
ADDRESS = (os.environ.get("TETRAD_OVERLOAD_ADDRESS", "127.0.10.1"), 9042)


def string(text):
    return struct.pack(">H", len(text)) + text.encode()


def long_string(text):
    text = text if isinstance(text, bytes) else text.encode()
    return struct.pack(">i", len(text)) + text


def value(data):
    return struct.pack(">i", len(data)) + data


def frame(opcode, body=b"", stream=0, version=4, flags=0):
    return struct.pack(">BBhBi", version, flags, stream, opcode, len(body)) + body


def parameters(values=None, page_size=None, paging_state=None, version=4):
    flags, out = 0, b""
    if values is not None:
        flags |= 0x01
        out += struct.pack(">H", len(values)) + b"".join(value(v) for v in values)
    if page_size is not None:
        flags |= 0x04
        out += struct.pack(">i", page_size)
    if paging_state is not None:
        flags |= 0x08
        out += value(paging_state)
    return struct.pack(">HI" if version == 5 else ">HB", 1, flags) + out


def query_body(text, **options):
    return long_string(text) + parameters(**options)


def startup_body(**options):
    options = {"CQL_VERSION": "3.4.7", **options}
    return struct.pack(">H", len(options)) + b"".join(string(k) + string(v) for k, v in options.items())


def crc24(data):
    crc = 0x875060
    for byte in data:
        crc ^= byte << 16
        for _ in range(8):
            crc <<= 1
            if crc & 0x1000000:
                crc ^= 0x1974F0B
    return crc


def segment(payload, self_contained=True, spoil=None):
    """An uncompressed segment of v5; spoil: "header" or "payload" gets a wrong checksum."""
    head = (len(payload) | (1 << 17 if self_contained else 0)).to_bytes(3, "little")
    head_crc = crc24(head) ^ (1 if spoil == "header" else 0)
    crc = zlib.crc32(payload, zlib.crc32(b"\xfa\x2d\x55\xca")) ^ (1 if spoil == "payload" else 0)
    return head + head_crc.to_bytes(3, "little") + payload + crc.to_bytes(4, "little")


class Failure(Exception):
    pass


class Answer:
    def __init__(self, head, body):
        self.version, self.flags, self.stream, self.opcode, _ = struct.unpack(">BBhBi", head)
        self.warnings = []
        if self.flags & 0x08:
            count, at = struct.unpack_from(">H", body)[0], 2
            for _ in range(count):
                size = struct.unpack_from(">H", body, at)[0]
                self.warnings.append(body[at + 2:at + 2 + size].decode())
                at += 2 + size
            body = body[at:]
        self.body = body
        self.code, self.text = None, ""
        if self.opcode == ERROR:
            self.code, size = struct.unpack_from(">iH", body)
            self.text = body[6:6 + size].decode()

    def __repr__(self):
        return f"opcode {self.opcode:#x}" + (f" error {self.code:#x} {self.text[:200]}" if self.opcode == ERROR else "")


class Client:
    """One connection: v4 with bare envelopes unless told otherwise."""

    def __init__(self, start=True, version=4, timeout=20, receive_buffer=None, **options):
        self.socket = socket.socket()
        if receive_buffer:
            self.socket.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, receive_buffer)
        self.socket.settimeout(timeout)
        self.socket.connect(ADDRESS)
        self.socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        self.version, self.segments = version, False
        self.buffer = bytearray()
        self.unwrapped = bytearray()
        if start:
            answer = self.ask(STARTUP, startup_body(**options))
            if answer.opcode != READY:
                raise Failure(f"STARTUP: {answer}")
            self.segments = version == 5

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.socket.close()

    def send(self, data):
        self.socket.sendall(data)

    def exactly(self, size):
        while len(self.buffer) < size:
            data = self.socket.recv(1 << 20)
            if not data:
                raise EOFError(f"closed with {len(self.buffer)} of {size} bytes")
            self.buffer += data
        out = bytes(self.buffer[:size])
        del self.buffer[:size]
        return out

    def from_segments(self, size):
        while len(self.unwrapped) < size:
            head = self.exactly(6)
            length = int.from_bytes(head[:3], "little") & 0x1FFFF
            self.unwrapped += self.exactly(length)
            self.exactly(4)
        out = bytes(self.unwrapped[:size])
        del self.unwrapped[:size]
        return out

    def answer(self):
        take = self.from_segments if self.segments else self.exactly
        head = take(9)
        return Answer(head, take(struct.unpack_from(">i", head, 5)[0]))

    def ask(self, opcode, body=b"", stream=0, flags=0):
        data = frame(opcode, body, stream, self.version, flags)
        self.send(segment(data) if self.segments else data)
        answer = self.answer()
        if answer.stream != stream:
            raise Failure(f"stream {answer.stream} instead of {stream}: {answer}")
        return answer

    def query(self, text, **options):
        return self.ask(QUERY, query_body(text, version=self.version, **options))

    def done(self, text, **options):
        answer = self.query(text, **options)
        if answer.opcode != RESULT:
            raise Failure(f"{text[:80]}: {answer}")
        return answer

    def prepare(self, text):
        answer = self.ask(PREPARE, long_string(text) + (struct.pack(">I", 0) if self.version == 5 else b""))
        if answer.opcode != RESULT:
            raise Failure(f"PREPARE {text[:80]}: {answer}")
        size = struct.unpack_from(">H", answer.body, 4)[0]
        return answer.body[6:6 + size]

    def closed(self):
        """Whether the server has closed, after whatever it still had to say."""
        try:
            while self.socket.recv(1 << 16):
                pass
            return True
        except ConnectionResetError:
            return True
        except socket.timeout:
            return False
