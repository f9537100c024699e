// SPDX-License-Identifier: Apache-2.0
// A signal to stop is heard by the loop, or found when the loop has ended; behind that it ends the
// process.
#include "server/runtime/stop_signals.h"

#include <csignal>
#include <sys/wait.h>
#include <unistd.h>
#include <vector>

#include <catch2/catch.hpp>

namespace tetrad::server {
namespace {

/// What of this test program's own is put back: Catch2 handles these signals, too.
class KeptHandlers {
 public:
  KeptHandlers() {
    ::sigaction(SIGTERM, nullptr, &term_);
    ::sigaction(SIGINT, nullptr, &int_);
  }
  ~KeptHandlers() {
    ::sigaction(SIGTERM, &term_, nullptr);
    ::sigaction(SIGINT, &int_, nullptr);
  }
  KeptHandlers(const KeptHandlers&) = delete;
  KeptHandlers& operator=(const KeptHandlers&) = delete;

 private:
  struct sigaction term_ = {}, int_ = {};
};

}  // namespace

TEST_CASE("the loop hears the first signal once") {
  const KeptHandlers kept;
  boost::asio::io_context loop;
  std::vector<int> heard;
  StopSignals signals(loop, [&](int signal) { heard.push_back(signal); });
  loop.poll();
  CHECK(heard.empty());
  std::raise(SIGINT);
  std::raise(SIGTERM);
  loop.poll();
  CHECK(heard == std::vector{SIGINT});
  std::raise(SIGTERM);
  loop.restart();
  loop.poll();
  CHECK(heard == std::vector{SIGINT});
  CHECK(signals.end() == SIGINT);
}

TEST_CASE("a signal that comes when the loop has ended is found at the end") {
  const KeptHandlers kept;
  boost::asio::io_context loop;
  bool was_heard = false;
  StopSignals signals(loop, [&](int) { was_heard = true; });
  loop.poll();
  std::raise(SIGTERM);
  CHECK(signals.end() == SIGTERM);
  CHECK(signals.end() == SIGTERM);
  CHECK_FALSE(was_heard);
}

TEST_CASE("without a signal there is none, and the next life does not know of the last one's") {
  const KeptHandlers kept;
  boost::asio::io_context loop;
  for (const int signal : {SIGTERM, 0, SIGINT, 0}) {
    StopSignals signals(loop, [](int) {});
    if (signal != 0) std::raise(signal);
    CHECK(signals.end() == signal);
  }
}

TEST_CASE("a signal behind the end ends the process") {
  const KeptHandlers kept;
  const pid_t child = ::fork();
  REQUIRE(child >= 0);
  if (child == 0) {
    boost::asio::io_context loop;
    StopSignals signals(loop, [](int) {});
    signals.end();
    std::raise(SIGTERM);
    ::_exit(0);
  }
  int status = 0;
  REQUIRE(::waitpid(child, &status, 0) == child);
  CHECK(WIFSIGNALED(status));
  CHECK(WTERMSIG(status) == SIGTERM);
}

}  // namespace tetrad::server
