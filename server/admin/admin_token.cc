// SPDX-License-Identifier: Apache-2.0
// The file of the token: 64 hexadecimal digits, that is 256 random bits, readable by the node's
// user only. It is made at the first start; later starts read it, so tools on the machine keep
// their access.
#include "server/admin/admin_token.h"

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>
#include <fcntl.h>
#include <filesystem>
#include <sys/stat.h>
#include <unistd.h>

#include "base/open_file.h"
#include "base/secret.h"

namespace tetrad::server {
namespace {

constexpr size_t kDigits = 64;

using base::OpenFile;

std::unexpected<Error> cannot(const char* what, const std::string& path) {
  return fail(ErrorCode::kIo, "cannot {} {}: {}", what, path, std::strerror(errno));
}

Result<std::string> read_token(const OpenFile& file, const std::string& path) {
  struct stat facts {};
  if (::fstat(*file, &facts) != 0) return cannot("read", path);
  // By the open descriptor, not by the path: another file cannot be put in between.
  if ((facts.st_mode & 077) != 0 && ::fchmod(*file, 0600) != 0) return cannot("protect", path);
  // One byte more than a token with its line feed: a longer file is seen as longer.
  std::array<char, kDigits + 2> text{};
  const ssize_t size = ::read(*file, text.data(), text.size());
  if (size < 0) return cannot("read", path);
  std::string_view token(text.data(), static_cast<size_t>(size));
  if (token.ends_with('\n')) token.remove_suffix(1);
  const auto is_digit = [](char c) { return (c >= '0' && c <= '9') || (c >= 'a' && c <= 'f'); };
  if (token.size() != kDigits || !std::ranges::all_of(token, is_digit)) {
    return fail(ErrorCode::kConfig,
                "{} is not {} hexadecimal digits; delete it and the node makes a new one", path,
                kDigits);
  }
  return Result<std::string>(std::in_place, token);
}

Result<void> write_token(const std::string& token, const std::string& path) {
  const std::string unfinished = path + ".new";
  // What a process that has ended left. O_EXCL then fails for a link that somebody puts there.
  ::unlink(unfinished.c_str());
  const OpenFile file(::open(unfinished.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0600));
  if (!file.is_open()) return cannot("make", unfinished);
  const std::string text = token + "\n";
  if (::write(*file, text.data(), text.size()) != static_cast<ssize_t>(text.size()) ||
      ::fsync(*file) != 0)
    return cannot("write", unfinished);
  if (::rename(unfinished.c_str(), path.c_str()) != 0) return cannot("make", path);
  // The folder, too: otherwise the name may be gone after a loss of power, and with it the token
  // that tools have.
  const std::string directory = std::filesystem::path(path).parent_path().string();
  const OpenFile parent(::open(directory.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  if (!parent.is_open() || ::fsync(*parent) != 0) return cannot("sync", directory);
  return {};
}

}  // namespace

Result<std::string> load_admin_token(const std::string& path,
                                     const std::function<void(std::span<uint64_t>)>& random) {
  const OpenFile file(::open(path.c_str(), O_RDONLY | O_CLOEXEC));
  if (file.is_open()) return read_token(file, path);
  if (errno != ENOENT) return cannot("read", path);
  std::array<uint64_t, kDigits / 16> words{};
  random(words);
  std::string token;
  for (const uint64_t word : words) token += fmt::format("{:016x}", word);
  TETRAD_TRY_VOID(write_token(token, path));
  return token;
}

bool is_same_token(std::string_view given, std::string_view expected) {
  return !expected.empty() && base::is_same_secret(given, expected);
}

}  // namespace tetrad::server
