// SPDX-License-Identifier: Apache-2.0
// system_views.settings.
#include <map>

#include <catch2/catch.hpp>

#include "server/node_views.h"

namespace tetrad::server {
namespace {

using Settings = std::map<std::string, std::string>;

Settings settings(const Options& options, const std::vector<StatementTimeout>& timeouts = {}) {
  const auto found = settings_of(options, timeouts);
  Settings out(found.begin(), found.end());
  CHECK(out.size() == found.size());  // no name twice
  return out;
}

TEST_CASE("settings have every option as the file would say it") {
  Options options;
  options.cluster_name = "of settings";
  const Settings found = settings(options);
  for (const OptionEntry& entry : option_table()) {
    INFO(entry.name);
    REQUIRE(found.contains(entry.name));
    CHECK(found.at(entry.name) == option_text(options, entry));
  }
  CHECK(found.at("cluster_name") == "of settings");
}

TEST_CASE("what means the same in Cassandra is there under its name, in its units") {
  Options options;
  options.batch_warn_kb = 7;
  options.mutation_mb_max = 3;
  options.data_directory = "/d";
  const Settings found = settings(options);
  CHECK(found.at("batch_size_warn_threshold") == "7KiB");
  CHECK(found.at("max_mutation_size") == "3MiB");
  CHECK(found.at("data_file_directories") == "[/d]");
  CHECK(found.at("commitlog_sync") == "periodic");
}

TEST_CASE("timeouts are those that hold now") {
  const Settings found = settings(Options(), {{"read", 1'234}, {"counterwrite", 99}});
  CHECK(found.at("read_request_timeout") == "1234ms");
  CHECK(found.at("read_timeout_ms") == "1234");
  CHECK(found.at("counter_write_request_timeout") == "99ms");
}

}  // namespace
}  // namespace tetrad::server
