// SPDX-License-Identifier: Apache-2.0
// tetrad: the server program.
#include <cstdio>
#include <cstdlib>
#include <exception>
#include <new>
#include <sstream>
#include <system_error>

#include "server/config/options.h"
#include "server/node.h"
#include "server/runtime/asio_reactor.h"
#include "server/runtime/data_folder.h"
#include "server/runtime/heard_signals.h"
#include "server/runtime/thread_limit.h"
#include "server/start_check.h"

/// jemalloc reads it before main(). What a burst of large requests took goes back to the system
/// within a second or so, on threads of its own; by itself it waits ten seconds, and for the next call
/// of a thread that may have none to make.
extern "C" const char* malloc_conf;
const char* malloc_conf = "background_thread:true,dirty_decay_ms:1000,muzzy_decay_ms:0";

namespace {

/// Says why the program ends, a line for each reason. 2: as it is configured it cannot run; 1: what
/// is in the way may pass, as an address that is not up yet. The service manager tries again then.
int ended_by(const tetrad::Error& error, const std::string& hint = "") {
  std::istringstream lines(error.message + hint);
  for (std::string line; std::getline(lines, line);)
    std::fprintf(stderr, "tetrad: %s\n", line.c_str());
  return error.code == tetrad::ErrorCode::kConfig ? 2 : 1;
}

/// While RocksDB opens a database it makes threads that it does not join when one more is refused:
/// that ends the process, whoever would catch the exception. Other reasons are mistakes and end it as
/// they always do.
[[noreturn]] void end_of_a_start() {
  bool is_limit = std::uncaught_exceptions() > 0;
  if (const std::exception_ptr thrown = std::current_exception()) {
    try {
      std::rethrow_exception(thrown);
    } catch (const std::system_error&) {
      is_limit = true;
    } catch (const std::bad_alloc&) {
      is_limit = true;
    } catch (...) {
      is_limit = false;
    }
  }
  if (!is_limit) std::abort();
  std::fprintf(stderr, "tetrad: no more threads or memory to open the databases with; %s\n",
               tetrad::server::kThreadLimits);
  std::_Exit(1);
}

int run(int argc, char** argv) {
  using namespace tetrad;
  server::HeardSignals::ignore();
  const auto line = server::read_command_line(argc, argv);
  if (!line) return ended_by(line.error(), " (tetrad --help lists the options)");
  if (line->show_help) {
    std::fputs(server::help_text().c_str(), stdout);
    return 0;
  }
  if (line->show_version) {
    std::printf("tetrad %s\n", server::kProgramVersion);
    return 0;
  }
  if (line->print_config) {
    std::fputs(server::config_text(line->options).c_str(), stdout);
    return 0;
  }
  if (line->check_config) {
    const auto checked = server::check_start(line->options, server::wall_now_us() / 1'000'000);
    if (!checked) return ended_by(checked.error());
    std::puts("ok");
    return 0;
  }
  const auto log = std::make_shared<server::RecentLog>(
      base::make_stderr_sink(server::log_level_named(line->options.log_level)),
      [] { return server::wall_now_us() / 1'000; });
  const Logger logger(log, "node");
  const std::string& data_directory = line->options.data_directory;
  if (const auto mark = server::decommission_mark(data_directory)) {
    logger.warn("not started: {}; delete {} to join as a new node", *mark, data_directory);
    return 0;
  }
  while (true) {
    const std::terminate_handler before = std::set_terminate(end_of_a_start);
    auto node = server::Node::open(line->options, logger, *log);
    std::set_terminate(before);
    if (!node) return ended_by(node.error());
    const auto ended = (*node)->run();
    if (!ended) return ended_by(ended.error());
    if (*ended == server::NodeEnd::kStopped) return 0;
  }
}

}  // namespace

// What no part has caught: a limit of the machine that is met at the start.
int main(int argc, char** argv) {
  try {
    return run(argc, argv);
  } catch (const std::system_error& thrown) {
    std::fprintf(stderr, "tetrad: %s; %s\n", thrown.what(), tetrad::server::kThreadLimits);
  } catch (const std::bad_alloc&) {
    std::fprintf(stderr, "tetrad: there is no memory left to start in (ulimit -v)\n");
  }
  return 1;
}
