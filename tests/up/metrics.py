#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
# What /metrics exports, as Prometheus reads it: its text format, help and type of each name, and every name that a document
# has. Last line N passed, N failed. metrics.py ADDRESS: where a node listens; TETRAD_BIN: where tetrad and tetractl are.
import collections
import math
import re
import sys
from pathlib import Path

from prometheus_client.parser import text_string_to_metric_families

TOP = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(TOP / "tests/tls"))
from node import Node, certificates, run_in_folder  # noqa: E402

ADDRESS = sys.argv[1]
OPTIONS_OF_TABLES = {"tetrad_initial_partitions", "tetrad_max_partition_mb"}
# What an operator of any database looks for first: its name and its type.
EXPECTED = {
    "process_cpu_seconds_total": "counter", "process_resident_memory_bytes": "gauge", "process_open_fds": "gauge",
    "process_max_fds": "gauge", "process_start_time_seconds": "gauge", "tetrad_build_info": "gauge",
    "tetrad_replication_nodes_live": "gauge", "tetrad_replication_nodes_away": "gauge",
    "tetrad_replication_partitions_under_replicated": "gauge", "tetrad_cql_errors_by_code_total": "counter",
    "tetrad_cql_request_seconds": "histogram", "tetrad_storage_block_cache_bytes": "gauge",
    "tetrad_storage_block_cache_hits_total": "counter", "tetrad_storage_block_cache_misses_total": "counter",
    "tetrad_storage_row_cache_hits_total": "counter", "tetrad_storage_row_cache_misses_total": "counter",
    "tetrad_storage_pending_compaction_bytes": "gauge", "tetrad_server_data_disk_free_bytes": "gauge",
}
results = {"passed": 0, "failed": 0}


def check(holds, what, detail=""):
    results["passed" if holds else "failed"] += 1
    print("%s %s%s" % ("ok     metrics:" if holds else "FAILED metrics:", what, "" if holds else ": %s" % (detail,)))


def documented():
    """Each name in a document, and which one."""
    found = {}
    for path in [TOP / "README.md", *sorted(TOP.glob("*/README.md"))]:
        for name in re.findall(r"`(tetrad_[a-z0-9_]+)`", path.read_text()):
            if name not in OPTIONS_OF_TABLES and re.match(r"tetrad_(audit|cql|io|loop|replication|server|storage|view)_", name):
                found.setdefault(name, str(path.relative_to(TOP)))
    return found


def heads(text):
    """Names in the lines of help and of type, in order; and those of samples."""
    said = {kind: re.findall(r"^# %s (\S+) \S.*$" % kind, text, re.M) for kind in ("HELP", "TYPE")}
    # The format wants the lines of one name together, after its help and its type.
    groups = re.findall(r"^# HELP (\S+) .*\n# TYPE (\S+) \w+\n((?:[^#\n].*\n)*)", text, re.M)
    return said, groups


def belongs(sample, name, kind):
    return sample == name or (kind == "histogram" and sample in (name + "_bucket", name + "_sum", name + "_count"))


def check_format(text):
    said, groups = heads(text)
    for kind, names in said.items():
        twice = [name for name, count in collections.Counter(names).items() if count > 1]
        check(names and not twice, "no name has its %s twice" % kind, twice)
    check(said["HELP"] == said["TYPE"] == [group[0] for group in groups], "each name has HELP, then TYPE",
          set(said["HELP"]) ^ set(said["TYPE"]))
    empty = [name for name, _, lines in groups if not lines]
    check(not empty, "each name has values", empty)
    lines = sum(len(lines.splitlines()) for _, _, lines in groups) + 2 * len(groups)
    check(lines == len(text.splitlines()), "every line belongs to a name", "%d of %d" % (lines, len(text.splitlines())))


def check_families(families):
    """What Prometheus makes of it."""
    check(len(families) > 100, "Prometheus' own reader takes it", len(families))
    samples = collections.Counter((sample.name, tuple(sorted(sample.labels.items()))) for family in families for sample in family.samples)
    check(not [one for one, count in samples.items() if count > 1], "no value stands twice", samples.most_common(3))
    strange, wrong = [], []
    for family in families:
        name = family.name + ("_total" if family.type == "counter" else "")
        if not all(belongs(sample.name, name, family.type) for sample in family.samples):
            strange.append(name)
        if family.type not in ("counter", "gauge", "histogram") or not family.documentation.endswith("."):
            strange.append("%s %s %s" % (name, family.type, family.documentation))
        if not all(math.isfinite(sample.value) and (family.type == "gauge" or sample.value >= 0) for sample in family.samples):
            wrong.append(name)
        if family.type == "histogram" and not rises(family):
            wrong.append(name)
    check(not strange, "types, samples and sentences fit their names", strange)
    check(not wrong, "values are numbers, counters not negative, buckets rise to their count", wrong)


def rises(histogram):
    """Its buckets of each set of labels, to the bound +Inf, which is its count."""
    buckets, counts = collections.defaultdict(list), {}
    for sample in histogram.samples:
        labels = tuple(sorted((key, value) for key, value in sample.labels.items() if key != "le"))
        if sample.name.endswith("_bucket"):
            buckets[labels].append((float(sample.labels["le"]), sample.value))
        elif sample.name.endswith("_count"):
            counts[labels] = sample.value
    return counts and buckets.keys() == counts.keys() and all(
        found == sorted(found) and [value for _, value in found] == sorted(value for _, value in found)
        and found[-1] == (math.inf, counts[labels]) for labels, found in buckets.items())


def main(top):
    tls = certificates(top / "tls", ADDRESS)
    # With all that has metrics of its own.
    node = Node(top, ADDRESS, "--audit-log-enabled", "--authenticator", "PasswordAuthenticator", "--cidr-authorizer",
                "CassandraCIDRAuthorizer", "--client-encryption-enabled", "--client-encryption-certificate-file", tls / (ADDRESS + ".pem"),
                "--client-encryption-key-file", tls / (ADDRESS + "-key.pem"))
    try:
        text = node.ask("/metrics")
    finally:
        node.stop()
    check_format(text)
    families = list(text_string_to_metric_families(text))
    check_families(families)
    types = {family.name + ("_total" if family.type == "counter" else ""): family.type for family in families}
    check(len(documented()) > 20, "documents name metrics", documented())
    for name, path in documented().items():
        check(name in types, "%s, which %s names" % (name, path), "is not exported")
    for name, kind in EXPECTED.items():
        check(types.get(name) == kind, "%s is a %s" % (name, kind), types.get(name))


run_in_folder(main, check, results)
