// SPDX-License-Identifier: Apache-2.0
// The file with the secret of the admin port.
#include "server/admin/admin_token.h"

#include <filesystem>
#include <fstream>
#include <sys/stat.h>
#include <unistd.h>

#include <catch2/catch.hpp>

#include "server/runtime/os_random.h"

namespace tetrad::server {
namespace {

namespace fs = std::filesystem;

mode_t mode_of(const fs::path& path) {
  struct stat facts {};
  REQUIRE(::stat(path.c_str(), &facts) == 0);
  return facts.st_mode & 0777;
}

}  // namespace

TEST_CASE("the token is made once, is its owner's alone, and is no other node's") {
  const fs::path top = fs::temp_directory_path() / ("tetrad-token-" + std::to_string(getpid()));
  fs::create_directories(top);
  const std::string path = top / "admin_token";
  const auto made = load_admin_token(path, os_random);
  REQUIRE(made);
  CHECK(made->size() == 64);
  CHECK(mode_of(path) == 0600);
  CHECK(load_admin_token(path, os_random).value_or("") == *made);
  CHECK(load_admin_token(top / "another", os_random).value_or(*made) != *made);
  fs::permissions(path, fs::perms::others_read, fs::perm_options::add);
  CHECK(load_admin_token(path, os_random).value_or("") == *made);
  CHECK(mode_of(path) == 0600);
  for (const std::string& text : {std::string(), std::string(63, 'a'), std::string(64, 'g'),
                                  *made + "0", std::string(100'000, 'a')}) {
    std::ofstream(path, std::ios::trunc) << text;
    const auto refused = load_admin_token(path, os_random);
    REQUIRE_FALSE(refused);
    CHECK(refused.error().code == ErrorCode::kConfig);
    CHECK(refused.error().message.find(path) != std::string::npos);
  }
  fs::remove_all(top);
  CHECK_FALSE(load_admin_token(path, os_random));
}

TEST_CASE("tokens are compared whole") {
  CHECK(is_same_token("abc", "abc"));
  CHECK_FALSE(is_same_token("abd", "abc"));
  CHECK_FALSE(is_same_token("ab", "abc"));
  CHECK_FALSE(is_same_token("", ""));  // a node without a token obeys nobody
}

}  // namespace tetrad::server
