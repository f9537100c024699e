// SPDX-License-Identifier: Apache-2.0
#include "base/secret.h"

#include <filesystem>
#include <fstream>
#include <sys/stat.h>
#include <unistd.h>

#include <catch2/catch.hpp>

namespace tetrad::base {

TEST_CASE("a secret is read from a file that only its owner may read") {
  char name[] = "/tmp/tetrad_secret_XXXXXX";
  const std::string path = std::string(::mkdtemp(name)) + "/secret";
  const auto refusal = [&](const std::string& of) {
    SecretText out;
    const auto read = read_secret_file(of, 20, "keys", out);
    return read ? "" : read.error().message;
  };
  CHECK(refusal(path) == "cannot read " + path + ": No such file or directory");
  std::ofstream(path) << "twenty characters...";
  ::chmod(path.c_str(), 0640);
  CHECK(refusal(path) == path +
                             " has the mode 640: others than its owner could come by the keys; "
                             "chmod 600 it");
  ::chmod(path.c_str(), 0400);
  SecretText out;
  REQUIRE(read_secret_file(path, 20, "keys", out));
  CHECK(out.text == "twenty characters...");
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
