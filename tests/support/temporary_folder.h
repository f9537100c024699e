// SPDX-License-Identifier: Apache-2.0
// A folder for the files of one test.
#pragma once

#include <cstdlib>
#include <filesystem>
#include <string>

#include <catch2/catch.hpp>

namespace tetrad::tests {

/// Made empty, and removed with all that is in it.
class TemporaryFolder {
 public:
  TemporaryFolder() {
    path_ = (std::filesystem::temp_directory_path() / "tetrad-test-XXXXXX").string();
    REQUIRE(::mkdtemp(path_.data()) != nullptr);
  }
  ~TemporaryFolder() { std::filesystem::remove_all(path_); }
  TemporaryFolder(const TemporaryFolder&) = delete;
  TemporaryFolder& operator=(const TemporaryFolder&) = delete;
  const std::string& path() const { return path_; }

 private:
  std::string path_;
};

}  // namespace tetrad::tests
