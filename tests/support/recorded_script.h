// SPDX-License-Identifier: Apache-2.0
// Scripts of tests/conformance on a LocalCluster, compared with what Apache Cassandra answered to
// them. The forms of the files are described in tests/conformance/README.md; answers are written as
// tests/conformance/answers.py writes them.
#pragma once

#include <filesystem>
#include <optional>
#include <regex>
#include <string>
#include <vector>

#include "cql/types/json_value.h"
#include "tests/support/local_cluster.h"

namespace tetrad::tests {

struct ScriptStatement {
  std::string text;
  std::optional<std::vector<cql::JsonValue>> values;  // prepared, executed once with each
  std::optional<int32_t> page;
  double wait_s = 0;
  std::string level, serial;
  bool frame = false;
};
std::vector<ScriptStatement> read_script(const std::filesystem::path& path);

struct RecordedAnswer {
  std::string text;
  std::vector<std::string> lines;
};
std::vector<RecordedAnswer> read_recorded(const std::filesystem::path& path);

/// The patterns of differences.txt that are of the script.
std::vector<std::regex> read_differences(const std::filesystem::path& path,
                                         const std::string& script);

class ScriptRunner {
 public:
  explicit ScriptRunner(const std::string& script);
  std::vector<std::string> answer(const ScriptStatement& statement);

 private:
  void run(const cql::StatementPtr& statement, const std::vector<cql::BoundValue>& values,
           const ScriptStatement& asked, std::vector<std::string>& lines);
  void run_frame(const ScriptStatement& asked, std::vector<std::string>& lines);
  cql::StatementPtr prepare(const std::string& text, bool tells, std::vector<std::string>& lines);
  std::vector<cql::BoundValue> bound(const cql::Statement& statement, const cql::JsonValue& values);
  void tell(const Result<cql::StatementResult>& result, bool first_page,
            std::vector<std::string>& lines);

  LocalCluster cluster_;
  base::Arena arena_;
};

/// Without what may differ in a text: see expected.py.
std::vector<std::string> comparable(std::vector<std::string> lines);

}  // namespace tetrad::tests
