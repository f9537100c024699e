// SPDX-License-Identifier: Apache-2.0
#include "base/secret.h"

#include <filesystem>
#include <fstream>
#include <sys/stat.h>
#include <unistd.h>
#include <vector>

#include <catch2/catch.hpp>

namespace tetrad::base {

TEST_CASE("a file may hold a secret whose owner alone has rights, or whose group is our own") {
  const std::vector<gid_t> own = {7, 2000};
  for (const mode_t mode : {0400, 0600, 0700}) CHECK(is_mode_of_secret(S_IFREG | mode, 9, own));
  for (const mode_t mode : {0440, 0640, 0040}) {
    CHECK(is_mode_of_secret(mode, 2000, own));
    CHECK(is_mode_of_secret(mode, 7, own));
    CHECK_FALSE(is_mode_of_secret(mode, 9, own));
    CHECK_FALSE(is_mode_of_secret(mode, 7, {}));
  }
  for (const mode_t mode : {0404, 0444, 0644, 0660, 0420, 0450, 0602, 0601})
    CHECK_FALSE(is_mode_of_secret(mode, 7, own));
}

TEST_CASE("a secret is read from a file that nobody else may read") {
  char name[] = "/tmp/tetrad_secret_XXXXXX";
  const std::string path = std::string(::mkdtemp(name)) + "/secret";
  const auto refusal = [&](const std::string& of) {
    SecretText out;
    const auto read = read_secret_file(of, 20, "keys", out);
    return read ? "" : read.error().message;
  };
  CHECK(refusal(path) == "cannot read " + path + ": No such file or directory");
  std::ofstream(path) << "twenty characters...";
  ::chmod(path.c_str(), 0644);
  CHECK(refusal(path) == path +
                             " has the mode 644: others than its owner could come by the keys; "
                             "chmod 600 it");
  for (const mode_t mode : {0400, 0440}) {  // its group is that of who makes it
    ::chmod(path.c_str(), mode);
    SecretText out;
    REQUIRE(read_secret_file(path, 20, "keys", out));
    CHECK(out.text == "twenty characters...");
  }
  ::chmod(path.c_str(), 0600);
  std::ofstream(path, std::ios::app) << ".";
  CHECK(refusal(path) == path + " has more than 20 bytes, too many for the keys");
  CHECK(refusal(name) == std::string(name) + " is no file");
  std::filesystem::remove_all(name);
}

TEST_CASE("secrets are the same when all of their bytes are") {
  CHECK(is_same_secret("abc", "abc"));
  CHECK(is_same_secret("", ""));
  for (const BytesView other : {"abd", "xbc", "ab", "abcd", ""})
    CHECK_FALSE(is_same_secret("abc", other));
}

}  // namespace tetrad::base
