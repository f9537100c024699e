// SPDX-License-Identifier: Apache-2.0
// SIGHUP, SIGUSR1 and SIGUSR2 are heard by the loop, and end nothing, before, while and after it.
#include "server/runtime/heard_signals.h"

#include <csignal>
#include <sys/wait.h>
#include <unistd.h>
#include <vector>

#include <catch2/catch.hpp>

namespace tetrad::server {
namespace {

/// What a child process of this test ends with: the handlers are the process's.
template <class Body>
int ends_with(Body body) {
  const pid_t child = ::fork();
  REQUIRE(child >= 0);
  if (child == 0) ::_exit(body());
  int status = 0;
  REQUIRE(::waitpid(child, &status, 0) == child);
  return WIFEXITED(status) ? WEXITSTATUS(status) : -WTERMSIG(status);
}

}  // namespace

TEST_CASE("the loop hears each signal, and the same ones again") {
  CHECK(ends_with([] {
          boost::asio::io_context loop;
          std::vector<int> heard;
          const HeardSignals signals(loop, [&](int signal) { heard.push_back(signal); });
          loop.poll();
          if (!heard.empty()) return 1;
          std::raise(SIGUSR2);
          std::raise(SIGHUP);
          std::raise(SIGHUP);
          loop.poll();
          if (heard != std::vector{SIGHUP, SIGUSR2}) return 2;
          std::raise(SIGHUP);
          loop.poll();
          std::raise(SIGUSR1);
          loop.poll();
          return heard == std::vector{SIGHUP, SIGUSR2, SIGHUP, SIGUSR1} ? 0 : 3;
        }) == 0);
}

TEST_CASE("they end no process where no loop hears them") {
  CHECK(ends_with([] {
          HeardSignals::ignore();
          for (const int signal : {SIGHUP, SIGUSR1, SIGUSR2}) std::raise(signal);
          for (int life = 0; life < 2; ++life) {
            boost::asio::io_context loop;
            {
              const HeardSignals signals(loop, [](int) {});
            }
            for (const int signal : {SIGHUP, SIGUSR1, SIGUSR2}) std::raise(signal);
          }
          return 0;
        }) == 0);
}

}  // namespace tetrad::server
