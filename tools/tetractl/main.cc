// SPDX-License-Identifier: Apache-2.0
// tetractl: the admin command. Asks a node's admin port over HTTP and prints tables, or the JSON as
// it came. What it can is the table in verbs.cc.
#include <cstdio>

#include <fmt/format.h>

#include "tools/tetractl/command_line.h"
#include "tools/tetractl/text_table.h"

namespace tetrad::tools {
namespace {

/// Asks what the verb asks, and prints the answer.
int ask_and_print(AdminClient& node, const Invocation& call) {
  Parameters parameters;
  for (const std::string_view name : call.verb->parameters)
    parameters.emplace_back(name, call.text(name));
  const std::string path(call.verb->path);
  nlohmann::json answer = call.verb->asks == Verb::Asks::kOrder ? node.order(path, parameters)
                                                                : node.fact(path, parameters);
  if (!call.as_json && call.verb->print != nullptr) return call.verb->print(answer, call);
  if (call.as_json) {
    fmt::print("{}\n", answer.dump(2));
    return 0;
  }
  // {"ok": true} prints nothing: the exit code says it.
  if (answer.is_object()) answer.erase("ok");
  print_object(answer);
  return 0;
}

// Exit codes: 0: done; 1: the node has refused, is away, or a verb has found something wrong; 2:
// the command line is wrong.
int run(const std::vector<std::string>& line) {
  const auto read = read_command_line(line);
  if (const Said* said = std::get_if<Said>(&read)) {
    const bool ends_line = said->text.ends_with('\n');
    // Help that was asked for is output; complaints are not.
    fmt::print(said->exit_code == 0 ? stdout : stderr, "{}{}", said->text, ends_line ? "" : "\n");
    return said->exit_code;
  }
  const Invocation& call = std::get<Invocation>(read);
  for (const std::string& note : call.notes) fmt::print(stderr, "tetractl: {}\n", note);
  AdminClient node(call.target);
  try {
    return call.verb->run != nullptr ? call.verb->run(node, call) : ask_and_print(node, call);
  } catch (const NodeError& error) {
    fmt::print(stderr, "tetractl: {}\n", error.what());
  } catch (const nlohmann::json::exception&) {
    fmt::print(
        stderr,
        "tetractl: no Tetrad of this version answers at {}:{}: the answer lacks what was asked "
        "for\n",
        call.target.host, call.target.port);
  }
  return 1;
}

}  // namespace
}  // namespace tetrad::tools

int main(int argc, char** argv) {
  return tetrad::tools::run(std::vector<std::string>(argv + 1, argv + argc));
}
