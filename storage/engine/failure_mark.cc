// SPDX-License-Identifier: Apache-2.0
// Files that outlive a process whose disk failed. They are written when RocksDB can be trusted no
// more, so they are plain files beside it.
#include "storage/engine/failure_mark.h"

#include <algorithm>
#include <cstdio>
#include <fcntl.h>
#include <fstream>
#include <unistd.h>

namespace tetrad::storage {
namespace {

constexpr int64_t kAgainUs = 3'600 * int64_t{1'000'000};

std::string file_in(const std::string& directory) { return directory + "/FAILED"; }

}  // namespace

void note_failure(const std::string& directory, int64_t wall_us, std::string_view reason) {
  std::string line(reason);
  // One line for each failure: time in microseconds, a space, the reason.
  std::replace(line.begin(), line.end(), '\n', ' ');
  std::ofstream(file_in(directory), std::ios::app) << wall_us << ' ' << line << '\n';
}

Result<void> check_failures(const std::string& directory, int64_t wall_us, const Logger& logger) {
  const std::string name = file_in(directory);
  std::ifstream file(name);
  if (!file) return {};
  int64_t at_us = 0, last_us = 0;
  std::string reason, last_reason;
  bool twice = false;
  while (file >> at_us && std::getline(file, reason)) {
    // Of the last two failures.
    twice = last_us != 0 && at_us - last_us < kAgainUs;
    last_us = at_us;
    last_reason = reason;
  }
  if (twice) {
    return fail(ErrorCode::kIo,
                "the disk of {} failed twice within an hour, at last by:{}; replace it, or remove "
                "{} to try again",
                directory, last_reason, name);
  }
  logger.warn(
      "the disk failed before this start; what was written in the last moments may be missing "
      "until the next repair directory={} reason=\"{}\"",
      directory, last_reason);
  // An hour without a failure: the disk is trusted again.
  if (wall_us - last_us > kAgainUs) std::remove(name.c_str());
  return {};
}

void note_damage(const std::string& directory, std::string_view reason) {
  const std::string name = directory + "/DAMAGED";
  // Synced, with its folder: the store must be known as damaged also after a power cut. Errors are
  // passed over, since there is nothing else to be done.
  std::FILE* const file = std::fopen(name.c_str(), "we");
  if (file == nullptr) return;
  std::fwrite(reason.data(), 1, reason.size(), file);
  std::fflush(file);
  ::fsync(::fileno(file));
  std::fclose(file);
  const int folder = ::open(directory.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  if (folder < 0) return;
  ::fsync(folder);
  ::close(folder);
}

std::optional<std::string> noted_damage(const std::string& directory) {
  std::ifstream file(directory + "/DAMAGED");
  if (!file) return std::nullopt;
  std::string reason;
  std::getline(file, reason);
  return reason;
}

}  // namespace tetrad::storage
