# SPDX-License-Identifier: Apache-2.0
"""Random types and values: each value as CQL writes it, as bytes for a bind marker, and as JSON."""

import datetime
import ipaddress
import json
import struct
import uuid
from dataclasses import dataclass


@dataclass(frozen=True)
class Type:
    kind: str
    args: tuple = ()
    frozen: bool = False
    size: int = 0  # of a vector
    fields: tuple = ()  # of a user type: names

    def text(self):
        if self.kind == "udt":
            out = self.name
        elif self.kind == "vector":
            return f"vector<{self.args[0].text()}, {self.size}>"
        elif self.args:
            out = f"{self.kind}<{', '.join(a.text() for a in self.args)}>"
        else:
            return self.kind
        return f"frozen<{out}>" if self.frozen and self.kind != "tuple" else out

    @property
    def name(self):
        return self.fields[0]

    @property
    def field_names(self):
        return self.fields[1:]

    @property
    def multi_cell(self):
        return self.kind in ("list", "set", "map", "udt") and not self.frozen

    def has(self, kind):
        return self.kind == kind or any(a.has(kind) for a in self.args)


@dataclass(frozen=True)
class Value:
    text: str
    wire: bytes | None
    json: str


NULL = Value("null", None, "null")


def quote(text):
    return "'" + text.replace("'", "''") + "'"


# --- scalars ----------------------------------------------------------------------------------------------------------


def varint_bytes(n):
    return n.to_bytes((n + (n < 0)).bit_length() // 8 + 1, "big", signed=True)


def unsigned_vint(n):
    extra = max(0, (n.bit_length() - 1) // 7)
    if extra >= 8:
        return b"\xff" + n.to_bytes(8, "big")
    raw = bytearray(n.to_bytes(extra + 1, "big"))
    raw[0] |= (0xFF00 >> extra) & 0xFF
    return bytes(raw)


def signed_vint(n):
    return unsigned_vint((n << 1) ^ (n >> 63) if n >= 0 else ((-n - 1) << 1) | 1)


def integer(size):
    low, high = -(1 << (8 * size - 1)), (1 << (8 * size - 1)) - 1
    return [Value(str(n), n.to_bytes(size, "big", signed=True), str(n)) for n in (0, 1, -1, 2, 7, 42, low, high, 100)]


def floating(form):
    out = []
    for text in ("0.0", "-0.0", "1.0", "-1.5", "2.25", "NaN", "Infinity", "-Infinity", "100.0", "0.1", "1.0E10", "-3.0E-5"):
        number = float(text.replace("Infinity", "inf"))
        out.append(Value(text, struct.pack(form, number), json.dumps(text) if "N" in text or "I" in text else text))
    return out


def texts(words):
    return [Value(quote(word), word.encode(), json.dumps(word)) for word in words]


def decimal(unscaled, scale, text):
    return Value(text, struct.pack(">i", scale) + varint_bytes(unscaled), text)


def date(text):
    days = (datetime.date.fromisoformat(text) - datetime.date(1970, 1, 1)).days
    return Value(quote(text), struct.pack(">I", days + 2**31), json.dumps(text))


def timestamp(millis):
    moment = datetime.datetime(1970, 1, 1) + datetime.timedelta(milliseconds=millis)
    text = moment.isoformat("T", "milliseconds") + "+0000"
    return Value(quote(text), struct.pack(">q", millis), json.dumps(moment.isoformat(" ", "milliseconds") + "Z"))


def time_of_day(nanos):
    seconds, fraction = divmod(nanos, 10**9)
    text = f"{seconds // 3600:02}:{seconds // 60 % 60:02}:{seconds % 60:02}.{fraction:09}"
    return Value(quote(text), struct.pack(">q", nanos), json.dumps(text))


def identifier(text):
    return Value(text, uuid.UUID(text).bytes, json.dumps(text))


def duration(text, months, days, nanos):
    return Value(text, signed_vint(months) + signed_vint(days) + signed_vint(nanos), json.dumps(text))


def address(text):
    return Value(quote(text), ipaddress.ip_address(text).packed, json.dumps(text))


TIME_IDS = ["5a1c395e-b41f-11e5-9f22-ba0be0483c18", "13814000-1dd2-11b2-8080-808080808080",
            "00000000-0000-1000-0000-000000000000", "c4f8cc5e-9d11-11ee-8c90-0242ac120002"]

POOLS = {
    "ascii": texts(["", "a", "ab", "b", "~", "it's"]),
    "bigint": integer(8),
    "blob": [Value("0x" + raw, bytes.fromhex(raw), json.dumps("0x" + raw)) for raw in ("", "00", "00ff", "7f", "ff", "0001")],
    "boolean": [Value("true", b"\1", "true"), Value("false", b"\0", "false")],
    "date": [date(d) for d in ("1970-01-01", "1969-12-31", "2024-02-29", "0001-01-01", "9999-12-31", "2011-02-03")],
    "decimal": [decimal(0, 0, "0"), decimal(15, 1, "1.5"), decimal(-1, 1, "-0.1"), decimal(7, 0, "7"), decimal(123456, 3, "123.456"),
                decimal(-98765432109876543210987654321, 2, "-987654321098765432109876543.21"), decimal(42, 0, "42")],
    "double": floating(">d"),
    "float": floating(">f"),
    "inet": [address(a) for a in ("0.0.0.0", "127.0.0.1", "192.168.1.1", "255.255.255.255", "::1", "2001:db8::ff")],
    "int": integer(4),
    "smallint": integer(2),
    "tinyint": integer(1),
    "text": texts(["", "a", "aa", "b", "é", "✓", "x y", "it's", "Z"]),
    "varchar": texts(["", "a", "aa", "b", "ü"]),
    "time": [time_of_day(n) for n in (0, 1, 45015_500000000, 86399_999999999, 3600_000000000)],
    "timestamp": [timestamp(m) for m in (0, 1, -1, 1000, 1709209815123, 253402300799999, -62135596800000)],
    "timeuuid": [identifier(i) for i in TIME_IDS],
    "uuid": [identifier(i) for i in TIME_IDS[:2] + ["c7a3b2d0-0b1f-4f8e-8a55-0123456789ab", "00000000-0000-0000-0000-000000000000",
                                                    "ffffffff-ffff-4fff-bfff-ffffffffffff"]],
    "varint": [Value(str(n), varint_bytes(n), str(n)) for n in (0, 1, -1, 7, 128, 255, -129, -(10**26), 10**26)],
    "duration": [duration("1y2mo3d", 14, 3, 0), duration("1h", 0, 0, 3600 * 10**9), duration("-2mo", -2, 0, 0), duration("3d5ns", 0, 3, 5),
                 duration("1mo", 1, 0, 0)],
}
SCALARS = sorted(POOLS)
POOLS["counter"] = integer(8)
KEY_SCALARS = [name for name in SCALARS if name != "duration"]
NUMBERS = ["tinyint", "smallint", "int", "bigint", "varint", "float", "double", "decimal"]
FIXED = {"boolean", "int", "float", "bigint", "double", "timestamp", "uuid", "timeuuid"}
COMMON = ["int", "text", "bigint", "int", "text", "uuid", "timestamp", "boolean", "double"]


# --- types ------------------------------------------------------------------------------------------------------------


def scalar_type(rng, key=False):
    if rng.random() < 0.5:
        return Type(rng.choice(COMMON))
    return Type(rng.choice(KEY_SCALARS if key else SCALARS))


def any_type(rng, udts, depth=0, key=False, frozen=False):
    """A random type. `key`: no durations inside; `frozen`: as keys and elements must be."""
    if depth >= 2 or rng.random() < (0.75 if key or depth else 0.5):
        return scalar_type(rng, key)
    kind = rng.choice(["list", "set", "map", "tuple", "vector", "udt", "list", "set", "map"])
    inner = lambda no_duration: any_type(rng, udts, depth + 1, key or no_duration, True)
    freeze = frozen or rng.random() < 0.3
    if kind == "udt":
        if not udts:
            return scalar_type(rng, key)
        udt = rng.choice(udts)
        if key and udt.has("duration"):
            return scalar_type(rng, key)
        if not udt_can_thaw(udt):
            freeze = True
        return Type("udt", udt.args, freeze, 0, udt.fields)
    if kind == "list":
        return Type("list", (inner(False),), freeze)
    if kind == "set":
        return Type("set", (inner(True),), freeze)
    if kind == "map":
        return Type("map", (inner(True), inner(False)), freeze)
    if kind == "tuple":
        return Type("tuple", tuple(inner(False) for _ in range(rng.randint(1, 3))), True)
    return Type("vector", (scalar_type(rng, key),) if rng.random() < 0.5 else (Type("float"),), True, rng.randint(1, 3))


def udt_can_thaw(udt):
    return all(not a.multi_cell for a in udt.args)


# --- values -----------------------------------------------------------------------------------------------------------


def sized(raw):
    return struct.pack(">i", -1) if raw is None else struct.pack(">i", len(raw)) + raw


def value(rng, kind, depth=0):
    """A random value that is not null."""
    if kind.kind in POOLS:
        return rng.choice(POOLS[kind.kind])
    if kind.kind in ("list", "set"):
        items = [value(rng, kind.args[0], depth + 1) for _ in range(rng.choice([0, 1, 1, 2, 2, 3]) if depth < 2 else 1)]
        if not items and depth == 0 and kind.kind == "set":
            return Value("{}", struct.pack(">i", 0), "[]")
        brackets = "[]" if kind.kind == "list" else "{}"
        if kind.kind == "set":
            items = unique(items)
        return Value(brackets[0] + ", ".join(i.text for i in items) + brackets[1],
                     struct.pack(">i", len(items)) + b"".join(sized(i.wire) for i in items), "[" + ", ".join(i.json for i in items) + "]")
    if kind.kind == "map":
        keys = unique([value(rng, kind.args[0], depth + 1) for _ in range(rng.choice([0, 1, 2, 2, 3]) if depth < 2 else 1)])
        pairs = [(k, value(rng, kind.args[1], depth + 1)) for k in keys]
        return Value("{" + ", ".join(f"{k.text}: {v.text}" for k, v in pairs) + "}",
                     struct.pack(">i", len(pairs)) + b"".join(sized(k.wire) + sized(v.wire) for k, v in pairs),
                     "{" + ", ".join(f"{k.json if k.json.startswith(chr(34)) else json.dumps(k.json)}: {v.json}" for k, v in pairs) + "}")
    if kind.kind == "tuple":
        items = [part(rng, a, depth) for a in kind.args]
        return Value("(" + ", ".join(i.text for i in items) + ")", b"".join(sized(i.wire) for i in items),
                     "[" + ", ".join(i.json for i in items) + "]")
    if kind.kind == "udt":
        items = [part(rng, a, depth) for a in kind.args]
        named = [(n, i) for n, i in zip(kind.field_names, items) if i.wire is not None or rng.random() < 0.3]
        if not named:
            named = [(kind.field_names[0], items[0])]
        return Value("{" + ", ".join(f"{n}: {i.text}" for n, i in named) + "}", b"".join(sized(i.wire) for i in items),
                     "{" + ", ".join(f'{json.dumps(n)}: {i.json}' for n, i in named) + "}")
    items = [value(rng, kind.args[0], depth + 1) for _ in range(kind.size)]
    fixed = kind.args[0].kind in FIXED
    return Value("[" + ", ".join(i.text for i in items) + "]",
                 b"".join(i.wire if fixed else unsigned_vint(len(i.wire)) + i.wire for i in items),
                 "[" + ", ".join(i.json for i in items) + "]")


def part(rng, kind, depth):
    return NULL if rng.random() < 0.15 else value(rng, kind, depth + 1)


def unique(items):
    return list({item.wire: item for item in items}.values())
