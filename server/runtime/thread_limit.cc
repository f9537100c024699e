// SPDX-License-Identifier: Apache-2.0
// There are several limits, of the user, the control group and the machine, and all count what others
// use: to try is the only way to know.
#include "server/runtime/thread_limit.h"

#include <latch>
#include <system_error>
#include <thread>
#include <vector>

namespace tetrad::server {

Result<void> check_threads(uint64_t wanted) {
  std::latch all_tried(1);
  std::vector<std::thread> threads;
  threads.reserve(wanted);
  std::string why;
  try {
    while (threads.size() < wanted) threads.emplace_back([&all_tried] { all_tried.wait(); });
  } catch (const std::system_error& thrown) {  // std::thread's way to say so
    why = thrown.code().message();
  }
  all_tried.count_down();
  for (std::thread& thread : threads) thread.join();
  if (why.empty()) return {};
  return fail(ErrorCode::kLimit, "{} threads are needed, and only {} can be made: {}; {}", wanted,
              threads.size(), why, kThreadLimits);
}

}  // namespace tetrad::server
