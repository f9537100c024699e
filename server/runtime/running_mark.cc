// SPDX-License-Identifier: Apache-2.0
// The mark is written under another name, synced, renamed and the folder synced: it is whole or not
// there. The device is part of it: the file system may have been mounted anew elsewhere.
#include "server/runtime/running_mark.h"

#include <cerrno>
#include <cstdio>
#include <cstring>
#include <fstream>
#include <unistd.h>

#include "server/runtime/data_folder.h"

namespace tetrad::server {
namespace {

std::string file_in(const std::string& data_directory) { return data_directory + "/RUNNING"; }

std::string text_of(const replication::MachineStart& machine) {
  return fmt::format("{} {}", machine.boot_id, machine.device);
}

std::unexpected<Error> cannot(const char* what, const std::string& file) {
  return fail(ErrorCode::kIo, "cannot {} {}: {}", what, file, std::strerror(errno));
}

}  // namespace

storage::LogRecovery log_recovery_of(const std::string& data_directory,
                                     const replication::MachineStart& now) {
  std::ifstream file(file_in(data_directory));
  std::string text;
  if (!file || !std::getline(file, text)) return storage::LogRecovery::kStrict;
  // Same start of the machine: the process was killed, but the kernel kept what it had written, so
  // logs must be whole (kStrict). Another start: the tail of a log may be torn.
  const bool same = !now.boot_id.empty() && text == text_of(now);
  return same ? storage::LogRecovery::kStrict : storage::LogRecovery::kAfterPowerCut;
}

Result<void> mark_running(const std::string& data_directory, const replication::MachineStart& now) {
  const std::string name = file_in(data_directory), draft = name + ".new";
  const std::string text = text_of(now) + "\n";
  std::FILE* const file = std::fopen(draft.c_str(), "we");
  bool written = file != nullptr && std::fwrite(text.data(), 1, text.size(), file) == text.size();
  written = written && std::fflush(file) == 0 && ::fsync(::fileno(file)) == 0;
  if (file != nullptr) written = std::fclose(file) == 0 && written;
  if (!written || ::rename(draft.c_str(), name.c_str()) != 0) return cannot("write", name);
  return sync_folder(data_directory);
}

Result<void> unmark_running(const std::string& data_directory) {
  const std::string name = file_in(data_directory);
  if (::unlink(name.c_str()) != 0 && errno != ENOENT) return cannot("remove", name);
  return sync_folder(data_directory);
}

}  // namespace tetrad::server
