// SPDX-License-Identifier: Apache-2.0
// tetrad: the server program.
#include <cstdio>

#include "server/config/options.h"
#include "server/node.h"

int main(int argc, char** argv) {
  using namespace tetrad;
  const auto line = server::read_command_line(argc, argv);
  if (!line) {
    std::fprintf(stderr, "tetrad: %s (tetrad --help lists the options)\n",
                 line.error().message.c_str());
    return 2;
  }
  if (line->show_help) {
    std::fputs(server::help_text().c_str(), stdout);
    return 0;
  }
  if (line->show_version) {
    std::printf("tetrad %s\n", server::kProgramVersion);
    return 0;
  }
  if (line->print_config) {
    std::fputs(server::default_config_text().c_str(), stdout);
    return 0;
  }
  const Logger logger(base::make_stderr_sink(server::log_level_named(line->options.log_level)),
                      "node");
  auto node = server::Node::open(line->options, logger);
  if (!node) {
    std::fprintf(stderr, "tetrad: %s\n", node.error().message.c_str());
    return node.error().code == ErrorCode::kConfig ? 2 : 1;
  }
  const auto ended = (*node)->run();
  if (!ended) {
    std::fprintf(stderr, "tetrad: %s\n", ended.error().message.c_str());
    return 1;
  }
  return 0;
}
