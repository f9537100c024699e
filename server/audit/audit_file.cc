// SPDX-License-Identifier: Apache-2.0
// System calls, not a stream: what a stream keeps in its buffer when a disk is full, or its file gone,
// is neither written nor known to be lost.
#include "server/audit/audit_file.h"

#include <cerrno>
#include <cstring>
#include <fcntl.h>
#include <filesystem>
#include <sys/stat.h>
#include <unistd.h>

#include "server/runtime/data_folder.h"

namespace tetrad::server {
namespace {

namespace fs = std::filesystem;

constexpr mode_t kOwnerOnly = 0600;  // statements may hold personal data and secrets

std::unexpected<Error> failed(const std::string& path) {
  return fail(ErrorCode::kIo, "{}: {}{}", path, std::strerror(errno), read_only_hint(errno));
}

}  // namespace

AuditFile::AuditFile(std::string folder, uint64_t bytes_max, size_t files_max)
    : folder_(std::move(folder)), bytes_max_(bytes_max), files_max_(files_max) {}

AuditFile::~AuditFile() { close(); }

std::string AuditFile::path(size_t number) const {
  return number == 0 ? folder_ + "/audit.log" : fmt::format("{}/audit.{}.log", folder_, number);
}

void AuditFile::close() {
  if (file_ >= 0) ::close(file_);
  file_ = -1;
}

Result<void> AuditFile::open() {
  close();
  std::error_code error;
  if (fs::create_directories(folder_, error); !error)
    fs::permissions(folder_, fs::perms::owner_all, error);
  if (error)
    return fail(ErrorCode::kIo, "{}: {}{}", folder_, error.message(),
                read_only_hint(error.value()));
  // Full ones of a version that left them readable for all.
  for (size_t i = 1; i <= files_max_ && ::chmod(path(i).c_str(), kOwnerOnly) == 0; ++i) continue;
  const std::string name = path(0);
  file_ = ::open(name.c_str(), O_WRONLY | O_APPEND | O_CREAT | O_CLOEXEC, kOwnerOnly);
  struct stat facts {};
  if (file_ < 0 || ::fstat(file_, &facts) != 0) {
    const auto why = failed(name);
    close();
    return why;
  }
  // A device that somebody put there keeps its own.
  if (S_ISREG(facts.st_mode)) ::fchmod(file_, kOwnerOnly);
  bytes_ = static_cast<uint64_t>(facts.st_size);
  return {};
}

Result<bool> AuditFile::look() {
  struct stat open_one {
  }, named{};
  const bool was_open = file_ >= 0;
  if (was_open && ::fstat(file_, &open_one) == 0 && ::stat(path(0).c_str(), &named) == 0 &&
      open_one.st_dev == named.st_dev && open_one.st_ino == named.st_ino)
    return false;
  TETRAD_TRY_VOID(open());
  return was_open;
}

Result<void> AuditFile::rotate() {
  for (size_t i = files_max_; i > 0; --i)
    if (::rename(path(i - 1).c_str(), path(i).c_str()) != 0 && errno != ENOENT)
      return failed(path(i));
  return open();
}

Result<void> AuditFile::append(std::string_view lines) {
  if (file_ < 0) TETRAD_TRY_VOID(open());
  if (bytes_ != 0 && bytes_ + lines.size() > bytes_max_) TETRAD_TRY_VOID(rotate());
  for (size_t at = 0; at < lines.size();) {
    const ssize_t written = ::write(file_, lines.data() + at, lines.size() - at);
    if (written >= 0) {
      at += static_cast<size_t>(written);
    } else if (errno != EINTR) {
      const auto why = failed(path(0));
      // No half line stays, and none twice.
      [[maybe_unused]] const int cut = ::ftruncate(file_, static_cast<off_t>(bytes_));
      return why;
    }
  }
  bytes_ += lines.size();
  return {};
}

}  // namespace tetrad::server
