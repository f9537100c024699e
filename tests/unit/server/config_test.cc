// SPDX-License-Identifier: Apache-2.0
// Options: each one's default, bounds and refusals; file and command line; conf/tetrad.yaml.
#include <algorithm>
#include <cstdio>
#include <filesystem>
#include <fstream>
#include <map>
#include <set>
#include <sstream>
#include <unistd.h>

#include <catch2/catch.hpp>

#include "server/config/guardrails.h"
#include "server/config/option_themes.h"
#include "server/config/options.h"

namespace tetrad::server {
namespace {

Result<CommandLine> read(std::vector<std::string> arguments) {
  std::vector<const char*> argv = {"tetrad"};
  for (const auto& argument : arguments) argv.push_back(argument.c_str());
  return read_command_line(static_cast<int>(argv.size()), argv.data());
}

std::string flag(const OptionEntry& entry) {
  std::string out = "--" + std::string(entry.name);
  std::replace(out.begin(), out.end(), '_', '-');
  return out;
}

std::string value_text(const Options& options, const OptionEntry& entry) {
  return option_text(options, entry);
}

/// A file that goes with its test.
class File {
 public:
  explicit File(const std::string& text)
      : path_(std::filesystem::temp_directory_path() /
              ("tetrad-config-" + std::to_string(getpid()) + ".yaml")) {
    std::ofstream(path_) << text;
  }
  ~File() { std::filesystem::remove(path_); }
  std::string path() const { return path_.string(); }

 private:
  const std::filesystem::path path_;
};

std::string refusal(const Result<CommandLine>& line) {
  REQUIRE_FALSE(line);
  CHECK(line.error().code == ErrorCode::kConfig);
  return line.error().message;
}

bool has(const std::string& text, const std::string& part) {
  return text.find(part) != std::string::npos;
}

TEST_CASE("without options every option has its default, which is within its own bounds") {
  const auto line = read({});
  REQUIRE(line);
  CHECK_FALSE((line->show_help || line->show_version || line->print_config));
  std::set<std::string_view> names;
  for (const OptionEntry& entry : option_table()) {
    CAPTURE(entry.name);
    CHECK(names.insert(entry.name).second);
    CHECK_FALSE(entry.sentence.empty());
    CHECK(value_text(line->options, entry) == value_text(Options{}, entry));
    const std::string value = value_text(Options{}, entry);
    if (!value.empty()) CHECK(read({flag(entry), value}));
  }
}

TEST_CASE("numbers: both bounds are taken, what is past them or no number is refused in one line") {
  for (const OptionEntry& entry : option_table()) {
    if (!std::holds_alternative<uint64_t Options::*>(entry.target)) continue;
    CAPTURE(entry.name);
    for (const uint64_t good : {entry.least, entry.most}) {
      const auto line = read({flag(entry), std::to_string(good)});
      REQUIRE(line);
      CHECK(value_text(line->options, entry) == std::to_string(good));
    }
    std::vector<std::string> bad = {
        std::to_string(entry.most + 1), "99999999999999999999", "x", "1x", "1.5", "0x10", " 1"};
    if (entry.least > 0) bad.push_back(std::to_string(entry.least - 1));
    for (const auto& value : bad) {
      CAPTURE(value);
      const std::string said = refusal(read({flag(entry) + "=" + value}));
      CHECK(said.starts_with(fmt::format("{}: '{}' is no whole number from {} to {}", entry.name,
                                         value, entry.least, entry.most)));
    }
  }
}

TEST_CASE("numbers with a unit") {
  const auto bytes = [](const char* value) {
    const auto line = read({"--collection-size-warn-threshold", value});
    REQUIRE(line);
    return line->options.collection_size_warn_threshold;
  };
  CHECK(bytes("7") == 7);
  CHECK(bytes("7B") == 7);
  CHECK(bytes("3KiB") == 3 << 10);
  CHECK(bytes("3MiB") == 3 << 20);
  CHECK(bytes("1024GiB") == uint64_t{1} << 40);
  CHECK(has(refusal(read({"--collection-size-warn-threshold=1025GiB"})), "is no whole number"));
  CHECK(has(refusal(read({"--collection-size-warn-threshold=99999999999999999GiB"})),
            "is no whole number"));
  CHECK(has(refusal(read({"--collection-size-warn-threshold=3kb"})), "is no whole number"));
  const auto line = read({"--maximum-timestamp-warn-threshold", "2d"});
  REQUIRE(line);
  CHECK(line->options.maximum_timestamp_warn_threshold == 2 * 86'400);
  CHECK(has(refusal(read({"--page-size-warn-threshold=2KiB"})), "is no whole number"));
  CHECK(has(help_text(), "B, KiB, MiB, GiB"));
  // What is refused says what is counted, and how it is written.
  CHECK(refusal(read({"--read-timeout-ms=5s"})) ==
        "read_timeout_ms: '5s' is no whole number from 1 to 60000; milliseconds, without a unit");
  CHECK(has(refusal(read({"--block-cache-mb=1GB"})), "; MiB, without a unit; or auto"));
  CHECK(has(refusal(read({"--maximum-timestamp-warn-threshold=5x"})),
            "; seconds, or with one of s, m, h, d behind it"));
  CHECK(has(refusal(read({"--collection-size-warn-threshold=5QB"})),
            "; bytes, or with one of B, KiB, MiB, GiB behind it"));
}

TEST_CASE("guardrails that cannot hold are refused") {
  const auto said = [](std::vector<std::string> arguments) {
    const auto line = read(std::move(arguments));
    REQUIRE(line);
    const auto checked = check_guardrails(line->options);
    if (checked) return std::string("ok");
    CHECK(checked.error().code == ErrorCode::kConfig);
    return checked.error().message;
  };
  CHECK(said({}) == "ok");
  CHECK(said({"--write-consistency-levels-warned", "one, LOCAL_QUORUM"}) == "ok");
  CHECK(said({"--write-consistency-levels-warned", "QUOROM"}) ==
        "write_consistency_levels_warned: 'QUOROM' is none of ANY, ONE, TWO, THREE, QUORUM, ALL, "
        "LOCAL_QUORUM, EACH_QUORUM, SERIAL, LOCAL_SERIAL, LOCAL_ONE");
  CHECK(said({"--tables-warn-threshold", "5", "--tables-fail-threshold", "5"}) == "ok");
  CHECK(said({"--tables-warn-threshold", "6", "--tables-fail-threshold", "5"}) ==
        "tables_warn_threshold: 6 warns of what tables_fail_threshold, 5, refuses");
  CHECK(said({"--minimum-replication-factor-warn-threshold", "3",
              "--minimum-replication-factor-fail-threshold", "2"}) == "ok");
  CHECK(said({"--minimum-replication-factor-warn-threshold", "2",
              "--minimum-replication-factor-fail-threshold", "3"}) != "ok");
}

TEST_CASE("guardrails: what the file says is what statements are measured by") {
  const File file(
      "keyspaces_warn_threshold: 1\nkeyspaces_fail_threshold: 2\ncollection_size_fail_threshold: "
      "4KiB\nminimum_timestamp_fail_threshold: 1h\nread_consistency_levels_warned: [one, ALL]\n"
      "table_properties_ignored: Comment, gc_grace_seconds\ngroup_by_enabled: false\n"
      "zero_ttl_on_twcs_warned: true\ndata_disk_usage_percentage_warn_threshold: 70\n"
      "data_disk_usage_percentage_fail_threshold: 90\ndata_disk_usage_max_disk_size: 10GiB\n"
      "partition_size_warn_threshold: 100MiB\npartition_tombstones_fail_threshold: 5000\n");
  const auto line = read({"--config", file.path()});
  REQUIRE(line);
  const cql::Guardrails rails = guardrails_of(line->options);
  CHECK(rails.keyspaces.warn == 1);
  CHECK(rails.keyspaces.fail == 2);
  CHECK(rails.collection_size_bytes.fail == 4096);
  CHECK(rails.minimum_timestamp_s.fail == 3600);
  CHECK(rails.read_consistency_levels.warned == std::vector<std::string>{"ALL", "ONE"});
  CHECK(rails.table_properties.ignored == std::vector<std::string>{"comment", "gc_grace_seconds"});
  CHECK_FALSE(rails.group_by);
  CHECK(rails.zero_ttl_on_twcs_warned);
  const replication::DiskUsageLimits disk = disk_usage_limits_of(line->options);
  CHECK(disk.warn_percent == 70);
  CHECK(disk.fail_percent == 90);
  CHECK(disk.max_disk_bytes == uint64_t{10} << 30);
  const auto partitions = partition_thresholds_of(line->options).lowest();
  CHECK(partitions.bytes == uint64_t{100} << 20);
  CHECK(partitions.tombstones == 5000);
  // Off unless asked for.
  CHECK(partition_thresholds_of(Options{}).lowest().bytes == 0);
  CHECK_FALSE(disk_usage_limits_of(Options{}).is_on());
  const cql::Guardrails none = guardrails_of(Options{});
  CHECK_FALSE((none.on_values() || none.keyspaces.is_on() || none.zero_ttl_on_twcs_warned));
  CHECK((none.group_by && none.allow_filtering && none.drop_keyspace && none.compact_tables));
}

TEST_CASE("texts and switches") {
  for (const OptionEntry& entry : option_table()) {
    CAPTURE(entry.name);
    if (std::holds_alternative<std::string Options::*>(entry.target)) {
      if (entry.choices.empty()) {
        const auto line = read({flag(entry), "some text"});
        REQUIRE(line);
        CHECK(value_text(line->options, entry) == "some text");
      }
      for (const auto choice : entry.choices) {
        const auto line = read({flag(entry), std::string(choice)});
        REQUIRE(line);
        CHECK(value_text(line->options, entry) == choice);
      }
      if (!entry.choices.empty()) {
        const std::string said = refusal(read({flag(entry), "other"}));
        CHECK(has(said, std::string(entry.name) + ": 'other' is none of "));
        CHECK(has(said, std::string(entry.choices.front())));
      }
    } else if (std::holds_alternative<bool Options::*>(entry.target)) {
      for (const auto& arguments : std::vector<std::vector<std::string>>{
               {flag(entry)}, {flag(entry), "true"}, {flag(entry) + "=true"}}) {
        const auto line = read(arguments);
        REQUIRE(line);
        CHECK(value_text(line->options, entry) == "true");
      }
      const auto off = read({flag(entry), "false"});
      REQUIRE(off);
      CHECK(value_text(off->options, entry) == "false");
      CHECK(refusal(read({flag(entry) + "=perhaps"})) ==
            fmt::format("{}: 'perhaps' is neither true nor false", entry.name));
    }
  }
  CHECK(log_level_named("debug") == base::LogLevel::kDebug);
  CHECK(log_level_named("info") == base::LogLevel::kInfo);
  CHECK(log_level_named("warn") == base::LogLevel::kWarn);
  CHECK(log_level_named("error") == base::LogLevel::kError);
}

TEST_CASE("numbers that the node may choose itself") {
  for (const OptionEntry& entry : option_table()) {
    if (!std::holds_alternative<uint64_t Options::*>(entry.target)) continue;
    CAPTURE(entry.name);
    const auto line = read({flag(entry), "auto"});
    CHECK(line.has_value() == may_be_automatic(entry));
    if (line) CHECK(option_text(line->options, entry) == "auto");
  }
  CHECK(option_text(Options(), *std::ranges::find(option_table(), "block_cache_mb",
                                                  &OptionEntry::name)) == "auto");
}

TEST_CASE("what no option is called is refused by name") {
  CHECK(refusal(read({"--listen-adress", "127.0.0.1", "--x"})) ==
        "there is no option '--listen-adress'; did you mean --listen-address?");
  CHECK(refusal(read({"--seed=127.0.0.1"})) ==
        "there is no option '--seed=127.0.0.1'; did you mean --seeds?");
  CHECK(refusal(read({"--zzz"})) == "there is no option '--zzz'");
  CHECK(refusal(read({"--data-dir", "/d"})) ==
        "there is no option '--data-dir'; did you mean --data-directory?");
  CHECK(refusal(read({"--data_dir=/d"})) ==
        "there is no option '--data_dir=/d'; did you mean --data-directory?");
  CHECK(refusal(read({"--audit-log", "1"})) == "there is no option '--audit-log'");  // of several
  CHECK(refusal(read({"---"})) == "there is no option '---'");
  CHECK(refusal(read({"start"})) == "'start' is no option: those begin with --");
  CHECK(has(refusal(read({"--no-such-option", "1"})), "--no-such-option"));
  CHECK(has(refusal(read({"--native_port", "1"})), "--native_port"));
  CHECK(has(refusal(read({"stray"})), "stray"));
  CHECK(refusal(read({"--native-port"})) == "--native-port: a value is missing behind it");
  CHECK(refusal(read({"--native-port=1", "--native-port=2"})) == "--native-port: said twice");
  CHECK(refusal(read({"--config"})) == "--config: a value is missing behind it");
  for (const char* const help : {"-h", "--help"}) CHECK(read({help})->show_help);
  for (const char* const version : {"-v", "--version"}) CHECK(read({version})->show_version);
}

TEST_CASE("names of cassandra.yaml get the same hint on the command line and in the file") {
  for (const auto& [name, hint] : std::map<std::string, std::string>{
           {"num_tokens", "Cassandra's is not needed here: data moves by physical partition"},
           {"native_transport_port", "what Cassandra calls so is here: native_port"},
           {"rpc_port", "what Cassandra calls so is here: native_port"},
           {"data_file_directories",
            "what Cassandra calls so is here: data_directory, of which a node has one"}}) {
    CAPTURE(name);
    std::string dashed = "--" + name;
    std::ranges::replace(dashed, '_', '-');
    for (const std::string& word : {dashed, dashed + "=1", "--" + name})
      CHECK(refusal(read({word, "1"})) == fmt::format("there is no option '{}'; {}", word, hint));
    const File file(name + ": 1\n");
    CHECK(refusal(read({"--config", file.path()})) ==
          fmt::format("{}: line 1: there is no option '{}'; {}", file.path(), name, hint));
  }
}

TEST_CASE("every name of Cassandra's files is explained by hand, and none is guessed by spelling") {
  const auto hint = [](const char* name) {
    const std::string said = refusal(read({std::string("--") + name, "1"}));
    return said.substr(said.find('\'', said.find('\'') + 1) + 1);
  };
  const std::string here = "; what Cassandra calls so is here: ", none = "; Cassandra's ";
  for (const auto& [name, what] : std::map<const char*, std::string>{
           {"audit_logging_options", here + "audit_log_enabled and those beside it"},
           {"memtable_heap_space", here + "write_buffer_mb"},
           {"memtable_heap_space_in_mb", here + "write_buffer_mb"},
           {"compaction_large_partition_warning_threshold_mb",
            here + "partition_size_warn_threshold"},
           {"rpc_interface", here + "rpc_address"},
           {"ssl_storage_port", here + "internode_port, which internode_encryption encrypts"},
           {"prepared_statements_cache_size",
            here + "prepared_statements_max, a number of statements"},
           {"tombstone_warn_threshold",
            here + "partition_tombstones_warn_threshold, which is logged"},
           {"truncate_request_timeout_in_ms", here + "truncate_timeout_ms"},
           {"internode_compression",
            none + "is not needed here: what nodes send is not compressed"},
           {"roles_validity", none + "is not needed here: a change of roles is in force at once"},
           {"trickle_fsync_interval",
            none + "is not needed here: files are synced as they are written"},
           {"commitlog_segment_size_in_mb", none + "has no meaning here"},
           {"column_index_size", none + "has no meaning here"}}) {
    CAPTURE(name);
    CHECK(hint(name) == what);
  }
  // Those of the file that comes with 5.0 which no option's name has.
  for (const char* name : {"network_authorizer",
                           "slow_query_log_timeout",
                           "partitioner",
                           "start_native_transport",
                           "auto_snapshot",
                           "incremental_backups",
                           "snapshot_before_compaction",
                           "cdc_enabled",
                           "rpc_keepalive",
                           "commit_failure_policy",
                           "permissions_validity",
                           "tombstone_failure_threshold",
                           "stream_throughput_outbound",
                           "default_compaction",
                           "storage_compatibility_mode",
                           "dynamic_snitch",
                           "crypto_provider",
                           "diagnostic_events_enabled",
                           "memtable",
                           "sstable",
                           "traverse_auth_from_root",
                           "hints_flush_period",
                           "max_hints_delivery_threads",
                           "repair_session_space",
                           "cross_node_timeout",
                           "replica_filtering_protection",
                           "counter_cache_size",
                           "batchlog_replay_throttle",
                           "inter_dc_tcp_nodelay",
                           "read_thresholds_enabled"}) {
    CAPTURE(name);
    CHECK_FALSE(hint(name).empty());
    CHECK_FALSE(has(hint(name), "did you mean"));
  }
}

TEST_CASE("words are taken as YAML 1.1 and Cassandra write them") {
  const auto options = [](const std::string& text) {
    const File file(text);
    const auto line = read({"--config", file.path()});
    if (!line) UNSCOPED_INFO(line.error().message);
    REQUIRE(line);
    return line->options;
  };
  for (const char* yes : {"true", "True", "TRUE", "yes", "Yes", "YES", "on", "On", "ON", "y", "Y"})
    CHECK(options(fmt::format("insecure_listen: {}\n", yes)).insecure_listen);
  for (const char* no :
       {"false", "False", "FALSE", "no", "No", "NO", "off", "Off", "OFF", "n", "N"})
    CHECK_FALSE(options(fmt::format("split_by_heat: {}\n", no)).split_by_heat);
  for (const char* other : {"tRUE", "yEs", "oN", "1", "0", "t", "\"\""})
    CHECK_FALSE(read({std::string("--insecure-listen=") + other}));
  CHECK(options("log_level: INFO\n").log_level == "info");
  CHECK(options("log_level: Warn\n").log_level == "warn");
  const Options classes = options(
      "authenticator: org.apache.cassandra.auth.PasswordAuthenticator\n"
      "cidr_authorizer: org.apache.cassandra.auth.CassandraCIDRAuthorizer\n");
  CHECK(classes.authenticator == "PasswordAuthenticator");
  CHECK(classes.cidr_authorizer == "CassandraCIDRAuthorizer");
  CHECK_FALSE(read({"--authenticator", "org.apache.cassandra.auth.MutualTlsAuthenticator"}));
  CHECK_FALSE(read({"--authenticator", "com.example.PasswordAuthenticator"}));
}

TEST_CASE("the command line goes before the file, and the file before the defaults") {
  const File file("native_port: 9142\nrack: \"r7\"\ninsecure_listen: true\nseeds: 127.0.0.1\n");
  for (const auto& arguments : std::vector<std::vector<std::string>>{
           {"--config", file.path(), "--rack", "r8"}, {"--rack", "r8", "--config", file.path()}}) {
    const auto line = read(arguments);
    REQUIRE(line);
    CHECK(line->options.native_port == 9142);
    CHECK(line->options.rack == "r8");
    CHECK(line->options.insecure_listen);
    CHECK(line->options.seeds == "127.0.0.1");
    CHECK(line->options.datacenter == "datacenter1");
  }
}

TEST_CASE("files that are wrong are refused with their path and the option") {
  const auto said = [](const std::string& text) {
    const File file(text);
    const std::string out = refusal(read({"--config", file.path()}));
    CHECK(has(out, file.path()));
    return out;
  };
  CHECK(refusal(read({"--config", "/no/such/file"})) ==
        "config: /no/such/file cannot be read: No such file or directory");
  CHECK(has(said("no_such_option: 1\n"), "there is no option 'no_such_option'"));
  CHECK(has(said("native_prot: 1\n"), "'native_prot'; did you mean native_port?"));
  CHECK(has(said("native_port: 99999\n"), "line 1: native_port: '99999' is no whole number"));
  CHECK(has(said("native_port: [1, 2]\n"), "native_port: takes one value, not a list"));
  CHECK(has(said("native_port:\n"), "native_port: there is no value behind it"));
  CHECK(has(said("native_port: 1\nrack: a\nnative_port: 2\n"),
            "line 3: native_port: said twice, first in line 1"));
  CHECK(has(said("data_file_directories: [/a]\n"),
            "'data_file_directories'; what Cassandra calls so is here: data_directory"));
  CHECK(has(said("write_request_timeout: 2s\n"), "is here: write_timeout_ms"));
  CHECK(has(said("num_tokens: 16\n"), "'num_tokens'; Cassandra's is not needed here: data moves"));
  // All that is wrong at once.
  const std::string several = said("native_prot: 1\nrack: a\nnative_port: x\nnum_tokens: 1\n");
  for (const char* one : {"did you mean native_port?", "'x' is no whole number", "'num_tokens'"})
    CHECK(has(several, one));
  CHECK(std::ranges::count(several, '\n') == 2);  // a line for each, which the file is named in
  CHECK(has(several, "\n/"));
  CHECK(has(several, "line 4: there is no option 'num_tokens'"));
  CHECK(has(said("data_dir: /d\n"), "'data_dir'; did you mean data_directory?"));
  CHECK(has(said("# what it is\n\n- native_port\n"), ": line 3: not a list of `name: value`"));
  CHECK(has(said("just words\n"), ": line 1: not a list of `name: value` lines"));
  CHECK(has(said("insecure_listen: perhaps\n"), "neither true nor false"));
  said("native_port: \"unclosed\nrack: [\n");
  said("? [a, b]\n: 1\n");
  said("rack: !!binary \"%%%\"\n\t- x: y\n");
  CHECK(has(refusal(read({"--config", "/no/such/file.yaml"})), "/no/such/file.yaml"));
  const std::string folder = std::filesystem::temp_directory_path().string();
  CHECK(refusal(read({"--config", folder})) ==
        fmt::format("config: {} is a directory, not a file", folder));
  const File empty("");
  CHECK(read({"--config", empty.path()}));
  const File comments("# nothing\n\n");
  CHECK(read({"--config", comments.path()}));
}

TEST_CASE("a value that takes in the lines behind it is refused") {
  const auto said = [](const std::string& text) {
    const File file(text);
    return refusal(read({"--config", file.path()}));
  };
  // The quote goes on to the end of the file, to another quote, or over an apostrophe.
  const std::string swallows =
      "line 3: (seeds: ...) is inside the value of 'rack', of line 2: is a quote or a bracket not "
      "closed there?";
  for (const char* rest : {"seeds: 127.0.0.1\ncluster_name: prod\n", "seeds: \"\n", "seeds:\n",
                           "seeds: 127.0.0.1 # it\"\n", "seeds: 127.0.0.1"}) {
    CAPTURE(rest);
    const std::string all = std::string("listen_address: 127.0.0.4\nrack: \"a\n") + rest;
    if (std::string_view(rest).ends_with('\n'))
      CHECK(has(said(all), swallows));
    else
      said(all);  // YAML itself finds this one
  }
  CHECK(has(said("rack: 'a\ncluster_name: it\nauthenticator: x\n"),
            "line 2: (cluster_name: ...) is inside the value of 'rack', of line 1"));
  said("seeds: [127.0.0.1,\nrack: b]\n");  // YAML has no text there
  // The last value of the file.
  for (const char* end : {"\n", "\n\n", "\n  b\n", "\n# words\n", " \r\n"}) {
    CAPTURE(end);
    CHECK(has(said(std::string("native_port: 1\nrack: \"a") + end),
              "line 2: rack: a quote is not closed"));
  }
  said("rack: a\n---\ncluster_name: b\n");
  // What is well.
  for (const char* text :
       {"rack: \"a: b\"\n# seeds: x\nnative_port: 1\n", "{rack: a,\nnative_port: 1}\n",
        "rack: \"a\n  b\"\n", "---\nrack: a\n", "rack: a\r\nnative_port: 1\r\n", "rack: a\n...\n",
        "rack: it's\n", "rack: a # it's\n\n", "\"rack\": a\nnative_port: 1"}) {
    CAPTURE(text);
    const File file(text);
    CHECK(read({"--config", file.path()}));
  }
}

TEST_CASE("an option takes a list only where it is one") {
  const auto said = [](const std::string& text) {
    const File file(text);
    return refusal(read({"--config", file.path()}));
  };
  for (const char* list : {"[/d1, /d2]", "\n  - /d1\n  - /d2", "[/d1]"})
    CHECK(
        has(said(fmt::format("rack: a\ndata_directory: {}\n", list)),
            "line 2: data_directory: takes one value, not a list: a node has one data directory"));
  CHECK(has(said("data_directory: {a: b}\n"), "data_directory: takes one value, not a map"));
  CHECK(has(said("rack: [a, b]\n"), "line 1: rack: takes one value, not a list"));
  CHECK(has(said("seeds: {a: b}\n"), "line 1: seeds: takes one value, not a map"));
  CHECK(has(said("seeds: [127.0.0.1, [x]]\n"),
            "line 1: seeds: its list has single values, no lists"));
  CHECK(
      has(said("seeds: [127.0.0.1, ~]\n"), "line 1: seeds: its list has single values, no empty"));
  CHECK(has(said("[rack]: b\n"), "line 1: not a `name: value` line"));
  const std::string comma =
      "data_directory: '/d1,/d2' has a comma: a node has one data directory, whose path has none";
  CHECK(has(said("data_directory: /d1,/d2\n"), "line 1: " + comma));
  CHECK(refusal(read({"--data-directory", "/d1,/d2"})) == comma);
  const File lists(
      "seeds: [127.0.0.1, 127.0.0.2]\naudit_log_included_users: [ann, bob]\n"
      "table_properties_warned:\n  - comment\n  - compaction\n");
  const auto line = read({"--config", lists.path()});
  REQUIRE(line);
  CHECK(line->options.seeds == "127.0.0.1, 127.0.0.2");
  CHECK(line->options.audit_log_included_users == "ann, bob");
  CHECK(line->options.table_properties_warned == "comment, compaction");
}

TEST_CASE("conf/tetrad.yaml says every default, and reads back as the defaults") {
  std::ifstream in(TETRAD_CONF_FILE);
  std::stringstream text;
  text << in.rdbuf();
  CHECK(text.str() == config_text(Options()));  // else: tetrad --print-config > conf/tetrad.yaml
  const auto line = read({"--config", TETRAD_CONF_FILE});
  REQUIRE(line);
  for (const OptionEntry& entry : option_table()) {
    CAPTURE(entry.name);
    CHECK(value_text(line->options, entry) == value_text(Options{}, entry));
    CHECK(has(help_text(), flag(entry) + " (default "));
    CHECK(has(help_text(), std::string(entry.sentence)));
  }
}

TEST_CASE("--help, --version and --print-config are told apart") {
  CHECK(read({"--help"})->show_help);
  CHECK(read({"--version"})->show_version);
  CHECK(read({"--print-config"})->print_config);
  CHECK(has(help_text(), "--print-config"));
}

}  // namespace
TEST_CASE("the help and the file group options by theme, each once, the guardrails last") {
  const std::string help = help_text(), file = config_text(Options());
  std::vector<OptionEntry> guardrails;
  append_guardrail_options(guardrails);
  const auto is_guardrail = [&](const std::string& name) {
    return std::ranges::find(guardrails, name, &OptionEntry::name) != guardrails.end();
  };
  for (const OptionEntry& entry : option_table()) {
    CAPTURE(entry.name);
    const size_t themes = std::ranges::count_if(
        option_themes(), [&](const OptionTheme& theme) { return theme.has(entry.name); });
    CHECK(themes == (is_guardrail(entry.name) ? 1 : 2));  // the last has all
    const std::string line = "\n  " + command_line_name(entry) + " (default";
    const size_t at = help.find(line);
    REQUIRE(at != std::string::npos);
    CHECK(help.find(line, at + 1) == std::string::npos);
    CHECK((at > help.find("\nGuardrails")) == is_guardrail(entry.name));
    const size_t place = file.find("\n" + entry.name + ": ");
    REQUIRE(place != std::string::npos);
    CHECK(file.find("\n" + entry.name + ": ", place + 1) == std::string::npos);
    const size_t heading = file.rfind("\n# --- ", place) + 7;
    CHECK(file.substr(heading, file.find(" ---\n", heading) - heading) ==
          theme_of(entry.name).title);
  }
  size_t last = 0;
  for (const OptionTheme& theme : option_themes()) {
    CHECK(has(help, fmt::format("\n{}:\n\n  --", theme.title)));
    const size_t heading = file.find(fmt::format("\n# --- {} ---\n", theme.title));
    REQUIRE(heading != std::string::npos);
    CHECK(heading > last);
    last = heading;
  }
}

}  // namespace tetrad::server
