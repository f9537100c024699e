// SPDX-License-Identifier: Apache-2.0
// Files are opened, checked and read once: the checks are on the open file, and the bytes go
// straight to where they are wiped.
#include "base/secret.h"

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>
#include <vector>

#include <openssl/crypto.h>

namespace tetrad::base {
namespace {

// By errno, which nothing may have changed since the call that failed.
std::unexpected<Error> cannot_read(const std::string& path) {
  return fail(ErrorCode::kConfig, "cannot read {}: {}", path, std::strerror(errno));
}

/// The effective group of the process, and its supplementary ones.
std::vector<gid_t> own_groups() {
  std::vector<gid_t> groups(static_cast<size_t>(std::max(::getgroups(0, nullptr), 0)));
  if (!groups.empty()) {
    const int count = ::getgroups(static_cast<int>(groups.size()), groups.data());
    groups.resize(static_cast<size_t>(std::max(count, 0)));
  }
  groups.push_back(::getegid());
  return groups;
}

// The mode of the file is checked before anything is read.
Result<void> read_all(int file, const std::string& path, size_t bytes_max, const char* what,
                      Bytes& out) {
  struct stat facts {};
  if (::fstat(file, &facts) != 0) return cannot_read(path);
  if (!S_ISREG(facts.st_mode)) return fail(ErrorCode::kConfig, "{} is no file", path);
  if (!is_mode_of_secret(facts.st_mode, facts.st_gid, own_groups()))
    return fail(ErrorCode::kConfig,
                "{} has the mode {:o}: others than its owner could come by the {}; chmod 600 it",
                path, facts.st_mode & 07777, what);
  // One byte more than is allowed tells a file that is too large, without trusting its size. All of
  // it is written in place: a growing buffer would leave copies of the secret behind.
  out.resize(bytes_max + 1);
  size_t size = 0;
  while (size < out.size()) {
    const ssize_t got = ::read(file, out.data() + size, out.size() - size);
    if (got < 0 && errno == EINTR) continue;
    if (got < 0) return cannot_read(path);
    if (got == 0) break;
    size += static_cast<size_t>(got);
  }
  if (size > bytes_max)
    return fail(ErrorCode::kConfig, "{} has more than {} bytes, too many for the {}", path,
                bytes_max, what);
  out.resize(size);
  return {};
}

}  // namespace

// Reading by the group is fine where the process is one of it; writing by it never is.
bool is_mode_of_secret(mode_t mode, gid_t group, std::span<const gid_t> own_groups) {
  const mode_t of_others = mode & (S_IRWXG | S_IRWXO);
  if (of_others == 0) return true;
  return of_others == S_IRGRP && std::ranges::find(own_groups, group) != own_groups.end();
}

// A plain loop over memory that is about to go may be dropped by the compiler; this one is not.
SecretText::~SecretText() { OPENSSL_cleanse(text.data(), text.size()); }

// O_NONBLOCK: a path that names a FIFO must not wait for a writer. The rights are checked on the
// open file, so that nobody can exchange it in between.
Result<void> read_secret_file(const std::string& path, size_t bytes_max, const char* what,
                              SecretText& out) {
  const int file = ::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK);
  if (file < 0) return cannot_read(path);
  Result<void> read = read_all(file, path, bytes_max, what, out.text);
  ::close(file);
  return read;
}

bool is_same_secret(BytesView a, BytesView b) {
  return a.size() == b.size() && CRYPTO_memcmp(a.data(), b.data(), a.size()) == 0;
}

}  // namespace tetrad::base
