// SPDX-License-Identifier: Apache-2.0
// Only a process that has not ended well, on a machine that was started again, leaves torn logs.
#include "server/runtime/running_mark.h"

#include <filesystem>
#include <unistd.h>

#include <catch2/catch.hpp>

namespace tetrad::server {

TEST_CASE(
    "logs are opened as after a power cut when the machine was started anew under a process") {
  namespace fs = std::filesystem;
  std::string pattern = (fs::temp_directory_path() / "tetrad-running-XXXXXX").string();
  REQUIRE(::mkdtemp(pattern.data()) != nullptr);
  const replication::MachineStart first{"boot-1", 7}, second{"boot-2", 7}, moved{"boot-1", 8};
  const replication::MachineStart unknown{"", 7};
  constexpr auto kStrict = storage::LogRecovery::kStrict;
  constexpr auto kAfterPowerCut = storage::LogRecovery::kAfterPowerCut;
  CHECK(log_recovery_of(pattern, first) == kStrict);  // nobody was here
  REQUIRE(mark_running(pattern, first));
  CHECK(log_recovery_of(pattern, first) == kStrict);  // a process was killed
  CHECK(log_recovery_of(pattern, second) == kAfterPowerCut);
  CHECK(log_recovery_of(pattern, moved) == kAfterPowerCut);
  CHECK(log_recovery_of(pattern, unknown) == kAfterPowerCut);
  REQUIRE(mark_running(pattern, second));
  CHECK(log_recovery_of(pattern, second) == kStrict);
  REQUIRE(mark_running(pattern, unknown));
  CHECK(log_recovery_of(pattern, unknown) == kAfterPowerCut);  // no two are equal
  REQUIRE(unmark_running(pattern));
  CHECK(log_recovery_of(pattern, first) == kStrict);  // it ended well
  CHECK(unmark_running(pattern));
  CHECK_FALSE(mark_running(pattern + "/none", first));
  fs::remove_all(pattern);
}

}  // namespace tetrad::server
