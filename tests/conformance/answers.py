# SPDX-License-Identifier: Apache-2.0
"""Runs the statements of a script on a server and writes down the answers, value by value, from the bytes of the wire."""

import datetime
import decimal
import hashlib
import ipaddress
import os
import re
import struct
import time
import uuid

from cassandra import ConsistencyLevel, DriverException, OperationTimedOut, ProtocolVersion
from cassandra.auth import PlainTextAuthProvider
from cassandra.cluster import Cluster, ExecutionProfile, EXEC_PROFILE_DEFAULT, NoHostAvailable
from cassandra.policies import FallthroughRetryPolicy, WhiteListRoundRobinPolicy
from cassandra.protocol import ErrorMessage, ProtocolHandler, ResultMessage
from cassandra.query import UNSET_VALUE, BatchStatement, BatchType, BoundStatement, SimpleStatement

from manners import Manner

# --- types and values as text -----------------------------------------------------------------------------------------


def type_text(cls):
    """A type of the driver's as CQL writes it."""
    name = cls.cassname
    parts = getattr(cls, "subtypes", ())
    if name == "UserType":
        fields = ", ".join(f"{n} {type_text(t)}" for n, t in zip(cls.fieldnames, cls.subtypes))
        return f"{cls.typename}{{{fields}}}"
    if name == "VectorType":
        return f"vector<{type_text(cls.subtype)}, {cls.vector_size}>"
    if name in ("ListType", "SetType", "MapType", "TupleType"):
        return f"{cls.typename}<{', '.join(type_text(t) for t in parts)}>"
    if name in ("FrozenType", "ReversedType"):
        return type_text(parts[0])
    return cls.typename.strip("'")


SHOWN_MAX = 4096  # bytes of a text, blob or vector; of a longer one its length and a digest are written down
FIXED = {"boolean": 1, "tinyint": 1, "smallint": 2, "int": 4, "float": 4, "bigint": 8, "double": 8, "timestamp": 8,
         "uuid": 16, "timeuuid": 16, "counter": 8, "date": 4, "time": 8}


def unsigned_vint(raw, at):
    first = raw[at]
    extra = 0
    while extra < 8 and first & (0x80 >> extra):
        extra += 1
    value = first & (0xFF >> extra) if extra < 8 else 0
    for byte in raw[at + 1:at + 1 + extra]:
        value = value << 8 | byte
    return value, at + 1 + extra


def signed_vint(raw, at):
    value, at = unsigned_vint(raw, at)
    return (value >> 1) ^ -(value & 1), at


def quoted(text):
    return "'" + text.replace("\\", "\\\\").replace("\n", "\\n").replace("\r", "\\r").replace("\t", "\\t") + "'"


def sized_items(raw, count, at):
    items = []
    for _ in range(count):
        if at >= len(raw):
            return items
        size, = struct.unpack_from(">i", raw, at)
        at += 4
        items.append(None if size < 0 else raw[at:at + size])
        at += max(size, 0)
    if at != len(raw):
        raise ValueError("bytes left over")
    return items


def value_text(cls, raw):
    """The bytes of a value as text: one text for one sequence of bytes."""
    if raw is None:
        return "null"
    name = cls.cassname
    if name in ("FrozenType", "ReversedType"):
        return value_text(cls.subtypes[0], raw)
    kind = cls.typename.strip("'")
    if len(raw) > SHOWN_MAX and kind not in ("list", "set", "map", "tuple") and name != "UserType":
        return f"<{len(raw)} bytes, sha1 {hashlib.sha1(raw).hexdigest()}>"
    if name == "UserType":
        items = sized_items(raw, len(cls.subtypes), 0)
        return "{" + ", ".join(f"{n}: {value_text(t, i)}" for n, t, i in zip(cls.fieldnames, cls.subtypes, items)) + "}"
    if name == "TupleType":
        items = sized_items(raw, len(cls.subtypes), 0)
        return "(" + ", ".join(value_text(t, i) for t, i in zip(cls.subtypes, items)) + ")"
    if name == "VectorType":
        return "[" + ", ".join(vector_items(cls, raw)) + "]"
    if kind in ("text", "varchar", "ascii"):
        return quoted(raw.decode("utf-8"))
    if kind == "blob":
        return "0x" + raw.hex()
    if not raw:
        return "<empty>"
    if kind in ("list", "set"):
        items = sized_items(raw, struct.unpack_from(">i", raw)[0], 4)
        text = ", ".join(value_text(cls.subtypes[0], item) for item in items)
        return "[" + text + "]" if kind == "list" else "{" + text + "}"
    if kind == "map":
        items = sized_items(raw, 2 * struct.unpack_from(">i", raw)[0], 4)
        key, value = cls.subtypes
        pairs = zip(items[::2], items[1::2])
        return "{" + ", ".join(f"{value_text(key, k)}: {value_text(value, v)}" for k, v in pairs) + "}"
    if kind in FIXED and len(raw) != FIXED[kind]:
        return f"<{kind} 0x{raw.hex()}>"
    if kind in ("tinyint", "smallint", "int", "bigint", "counter", "varint"):
        return str(int.from_bytes(raw, "big", signed=True))
    if kind == "boolean":
        return "true" if raw[0] else "false"
    if kind in ("float", "double"):
        text = repr(struct.unpack(">f" if kind == "float" else ">d", raw)[0])
        return text if text != "nan" else "nan 0x" + raw.hex()
    if kind == "decimal":
        return f"{int.from_bytes(raw[4:], 'big', signed=True)}e{-struct.unpack('>i', raw[:4])[0]}"
    if kind in ("uuid", "timeuuid"):
        return str(uuid.UUID(bytes=raw))
    if kind == "inet":
        return str(ipaddress.ip_address(raw))
    if kind == "timestamp":
        millis = int.from_bytes(raw, "big", signed=True)
        try:
            moment = datetime.datetime(1970, 1, 1) + datetime.timedelta(milliseconds=millis)
            return f"{moment.isoformat(' ', 'milliseconds')}"
        except OverflowError:
            return f"{millis} ms"
    if kind == "date":
        days = int.from_bytes(raw, "big") - 2**31
        try:
            return str(datetime.date(1970, 1, 1) + datetime.timedelta(days=days))
        except OverflowError:
            return f"{days} days"
    if kind == "time":
        nanos = int.from_bytes(raw, "big", signed=True)
        seconds, fraction = divmod(nanos, 10**9)
        return f"{seconds // 3600:02}:{seconds // 60 % 60:02}:{seconds % 60:02}.{fraction:09}"
    if kind == "duration":
        months, at = signed_vint(raw, 0)
        days, at = signed_vint(raw, at)
        nanos, at = signed_vint(raw, at)
        return f"{months}mo{days}d{nanos}ns"
    return f"<{kind} 0x{raw.hex()}>"


def vector_items(cls, raw):
    kind = cls.subtype.typename.strip("'")
    at, items = 0, []
    fixed = {"boolean": 1, "int": 4, "float": 4, "bigint": 8, "double": 8, "timestamp": 8, "uuid": 16, "timeuuid": 16}
    for _ in range(cls.vector_size):
        if kind in fixed:
            size = fixed[kind]
        else:
            size, at = unsigned_vint(raw, at)
        items.append(value_text(cls.subtype, raw[at:at + size]))
        at += size
    if at != len(raw):
        items.append(f"<left over 0x{raw[at:].hex()}>")
    return items


# --- values for prepared statements -----------------------------------------------------------------------------------


def bound(cls, value):
    """A value of a script, from JSON, as the driver wants it for this type."""
    if value is None:
        return None
    if isinstance(value, dict) and value.get("unset") is True:
        return UNSET_VALUE
    if isinstance(value, dict) and "raw" in value:
        return bytes.fromhex(value["raw"])
    if isinstance(value, dict) and "repeat" in value:
        piece, count = value["repeat"]
        return bytes.fromhex(piece) * count
    raw = cls
    while raw.cassname in ("FrozenType", "ReversedType"):
        raw = raw.subtypes[0]
    kind = raw.typename.strip("'")
    if raw.cassname == "UserType":
        return tuple(bound(t, v) for t, v in zip(raw.subtypes, value))
    if raw.cassname == "TupleType":
        return tuple(bound(t, v) for t, v in zip(raw.subtypes, value))
    if raw.cassname == "VectorType":
        return [bound(raw.subtype, v) for v in value]
    if kind == "list":
        return [bound(raw.subtypes[0], v) for v in value]
    if kind == "set":
        return [bound(raw.subtypes[0], v) for v in value]
    if kind == "map":
        return {bound(raw.subtypes[0], k): bound(raw.subtypes[1], v) for k, v in value}
    if kind == "blob":
        return bytes.fromhex(value[2:])
    if kind in ("uuid", "timeuuid"):
        return uuid.UUID(value)
    if kind == "decimal":
        return decimal.Decimal(value)
    return value


# --- a session that keeps what came over the wire ---------------------------------------------------------------------


PREPARE_ERROR = re.compile(r'code=([0-9a-fA-F]{4}) \[[^]]*\] message="(.*?)"(?:>?|>\}\))$', re.DOTALL)


class WireResult(ResultMessage):
    def recv_results_rows(self, f, protocol_version, user_type_map, result_metadata, column_encryption_policy):
        from cassandra.protocol import read_int
        self.recv_results_metadata(f, user_type_map)
        columns = self.column_metadata or result_metadata
        rows = [self.recv_row(f, len(columns)) for _ in range(read_int(f))]
        self.column_names = [column[2] for column in columns]
        self.column_types = [column[3] for column in columns]
        self.parsed_rows = rows


def wire_handler():
    """A protocol handler class of its own for each session: it keeps the last answer."""

    class Handler(ProtocolHandler):
        message_types_by_opcode = dict(ProtocolHandler.message_types_by_opcode)
        message_types_by_opcode[ResultMessage.opcode] = WireResult
        last = None

        @classmethod
        def decode_message(cls, *args, **kwargs):
            message = super().decode_message(*args, **kwargs)
            cls.last = message
            return message

    return Handler


class Server:
    """A connection to one node or several: statements go to them in turn."""

    def __init__(self, hosts, port=9042, manner=Manner()):
        self.arguments = (hosts, port, manner)
        profile = ExecutionProfile(
            load_balancing_policy=WhiteListRoundRobinPolicy(hosts), retry_policy=FallthroughRetryPolicy(),
            consistency_level=ConsistencyLevel.QUORUM, request_timeout=30, row_factory=lambda names, rows: rows)
        name, _, password = os.environ.get("TETRAD_REFERENCE_LOGIN", "").partition(":")
        self.cluster = Cluster(
            hosts, port=port, auth_provider=PlainTextAuthProvider(name, password) if name else None,
            protocol_version=manner.protocol, execution_profiles={EXEC_PROFILE_DEFAULT: profile},
            schema_metadata_enabled=False, token_metadata_enabled=False, max_schema_agreement_wait=0, connect_timeout=30)
        self.manner = manner
        self.session = self.cluster.connect(wait_for_all_pools=True)
        self.handler = wire_handler()
        self.session.client_protocol_handler = self.handler

    def close(self):
        self.cluster.shutdown()

    def reopen(self, attempts=10):
        """After a protocol error, which the driver answers by giving up the connection, and after a restart."""
        self.close()
        for attempt in range(1, attempts + 1):
            try:
                return self.__init__(*self.arguments)
            except NoHostAvailable:  # late, on a busy machine
                if attempt == attempts:
                    raise
                time.sleep(3)

    def quietly(self, text):
        self.session.execute(text)

    def answer(self, statement):
        """The lines that describe what the server says to a statement."""
        lines = []
        time.sleep(statement.wait)
        try:
            # A list of DESCRIBE cannot go on after a change of the schema, and other scripts make some all the time.
            page = statement.page or (None if statement.text.upper().startswith("DESC") else self.manner.page)
            if statement.frame:
                self._run_frame(statement, lines)
                return lines
            if statement.values is None and not self.manner.prepared:
                self._run(self._at_level(SimpleStatement(statement.text, fetch_size=page), statement), None, page, lines)
                return lines
            prepared = self._prepare(statement.text, lines)
            if prepared is None:
                return lines
            prepared.fetch_size = page
            if statement.values is None:
                lines.clear()  # the answer to the execution only
            for values in [()] if statement.values is None else statement.values:
                try:
                    if isinstance(values, dict):
                        types = {column.name: column.type for column in prepared.column_metadata}
                        values = {name: bound(types[name], value) for name, value in values.items()}
                    else:
                        values = [bound(column.type, value) for column, value in zip(prepared.column_metadata, values)]
                    statement_bound = self._at_level(self._bind(prepared, values), statement)
                except (AttributeError, KeyError, TypeError, ValueError, struct.error) as error:
                    raise ValueError(f"the script's values do not fit: {statement.text}: {error!r}") from error
                self._run(statement_bound, values, page, lines)
        except OperationTimedOut as error:
            lines.append("no answer: OperationTimedOut")
        return lines

    @staticmethod
    def _at_level(asked, statement):
        if statement.level:
            asked.consistency_level = ConsistencyLevel.name_to_value[statement.level]
        if statement.serial:
            asked.serial_consistency_level = ConsistencyLevel.name_to_value[statement.serial]
        return asked

    def _run_frame(self, statement, lines):
        """A BATCH as a message of the protocol; with values its statements are prepared, each with a list of its own."""
        kind, texts = statement.batch()
        batch = BatchStatement(getattr(BatchType, kind))
        for text, values in zip(texts, statement.values or [None] * len(texts)):
            if values is None:
                batch.add(SimpleStatement(text))
                continue
            prepared = self._prepare(text, lines)
            if prepared is None:
                return
            batch.add(self._bind(prepared, [bound(column.type, value) for column, value in zip(prepared.column_metadata, values)]))
        self._run(self._at_level(batch, statement), None, None, lines)

    @staticmethod
    def _bind(prepared, values):
        """Binds without the driver's own checks of bytes: a value that is bytes already goes out as it is."""
        ready = BoundStatement(prepared)
        if isinstance(values, dict):
            values = [values.get(column.name, UNSET_VALUE) for column in prepared.column_metadata]
        out = []
        for column, value in zip(prepared.column_metadata, values):
            if value is None or value is UNSET_VALUE or isinstance(value, bytes):
                out.append(value)
            else:
                out.append(column.type.serialize(value, prepared.protocol_version))
        ready.values = out
        return ready

    def _prepare(self, text, lines):
        self.handler.last = None
        try:
            prepared = self.session.prepare(text)
        except (DriverException, ErrorMessage, NoHostAvailable) as error:
            self._error(error, lines)
            return None
        binds = ", ".join(f"{column.name} {type_text(column.type)}" for column in prepared.column_metadata or ())
        indexes = prepared.routing_key_indexes
        keys = "" if not indexes else f" (partition key: {', '.join(map(str, indexes))})"
        lines.append(f"prepared: {binds or 'nothing'}{keys}")
        if prepared.result_metadata:
            columns = ", ".join(f"{column[2]} {type_text(column[3])}" for column in prepared.result_metadata)
            lines.append(f"result: {columns}")
        return prepared

    def _run(self, statement, values, page, lines):
        self.handler.last = None
        try:
            future = self.session.execute_async(statement)
            future.result()
            self._result(future, lines, None)
            pages = 1
            while future.has_more_pages:
                pages += 1
                if pages > 1000:
                    lines.append("more than 1000 pages")
                    return
                future.start_fetching_next_page()
                future.result()
                self._result(future, lines, pages)
        except (DriverException, ErrorMessage, NoHostAvailable) as error:
            self._error(error, lines)

    def _result(self, future, lines, page):
        message = self.handler.last
        for warning in message.warnings or ():
            lines.append(f"warning: {' '.join(warning.split())}")
        rows = getattr(message, "parsed_rows", None)
        if rows is not None:
            if page is None:
                columns = ", ".join(f"{n} {type_text(t)}" for n, t in zip(message.column_names, message.column_types))
                lines.append(f"columns: {columns}")
            else:
                lines.append("-- next page")
            for row in rows:
                lines.append("| " + " | ".join(value_text(t, v) for t, v in zip(message.column_types, row)))
            return
        event = getattr(message, "schema_change_event", None)
        if event:
            names = [str(event[key]) for key in ("keyspace", "table", "type", "function", "aggregate") if event.get(key)]
            lines.append(f"schema {event['change_type']} {event['target_type']} {'.'.join(names)}")
        else:
            lines.append("OK")

    def _error(self, error, lines):
        message = self.handler.last
        if message is None:  # PREPARE does not go through the session's handler
            found = PREPARE_ERROR.search(str(error))
            if found:
                lines.append("error 0x" + found[1] + " " + found[2].replace("\n", "\\n"))
                return
        if isinstance(message, ErrorMessage):
            text = (message.message or "").replace("\n", "\\n")
            lines.append(f"error 0x{message.code:04x} {text}")
            for warning in getattr(message, "warnings", None) or ():
                lines.append(f"warning: {' '.join(warning.split())}")
        else:
            lines.append(f"no answer: {type(error).__name__} {error}")


class ScriptRun:
    """A script, run in a keyspace of its own: begin, advance as often as wanted, end; each on any session."""

    SETTLE_S = 15  # a view has what its table has within this, also while a node is away

    def __init__(self, name, statements, is_right=None):
        """is_right(place, lines): whether an answer is the recorded one; None: it is about to be recorded."""
        self.keyspace = self.used = "conf_" + name
        self.statements = statements
        self.is_right = is_right
        self.answers = []  # a list of lines for each statement so far

    def begin(self, server):
        server.quietly(f"DROP KEYSPACE IF EXISTS {self.keyspace}")
        server.quietly(f"CREATE KEYSPACE {self.keyspace} WITH replication = {{'class': 'SimpleStrategy', 'replication_factor': 1}}")

    def advance(self, server, until=None, after_each=lambda: None):
        server.quietly(f"USE {self.used}")
        for statement in self.statements[len(self.answers):until]:
            self.answers.append(self.settled_answer(server, statement) if statement.settles else server.answer(statement))
            if USE.match(statement.text) and not self.answers[-1][0].startswith("error "):
                self.used = USE.match(statement.text)[1]
            after_each()

    def settled_answer(self, server, statement):
        if self.is_right is None:
            time.sleep(1)
            return server.answer(statement)
        until = time.monotonic() + self.SETTLE_S
        while not self.is_right(len(self.answers), lines := server.answer(statement)) and time.monotonic() < until:
            if lines and lines[0].startswith("error 0x2000"):  # no parser changes its mind
                break
            time.sleep(0.1)
        return lines

    def end(self, server):
        server.quietly(f"DROP KEYSPACE IF EXISTS {self.keyspace}")


USE = re.compile(r"USE (\S+)$", re.IGNORECASE)


def run_script(server, name, statements):
    """A list of lines for each statement."""
    run = ScriptRun(name, statements)
    run.begin(server)
    try:
        run.advance(server)
    finally:
        run.end(server)
    return run.answers
