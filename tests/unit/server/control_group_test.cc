// SPDX-License-Identifier: Apache-2.0
// Limits of control groups, of trees as kernels and container engines make them.
#include "server/runtime/control_group.h"

#include <filesystem>
#include <fstream>
#include <unistd.h>

#include <catch2/catch.hpp>

namespace tetrad::server {
namespace {

namespace fs = std::filesystem;

class Tree {
 public:
  Tree() : top_(fs::temp_directory_path() / ("tetrad-cgroup-" + std::to_string(getpid()))) {
    fs::remove_all(top_);
    fs::create_directories(top_);
  }
  ~Tree() { fs::remove_all(top_); }
  Tree& file(const std::string& path, const std::string& text) {
    fs::create_directories((top_ / path).parent_path());
    std::ofstream(top_ / path) << text << "\n";
    return *this;
  }
  ControlGroupLimits limits(const std::string& membership) const {
    return control_group_limits(membership, top_.string());
  }

 private:
  const fs::path top_;
};

constexpr uint64_t kMiB = 1 << 20;

}  // namespace

TEST_CASE("control groups, version 2: the tightest limit of a group and of those around it") {
  Tree tree;
  tree.file("cgroup.controllers", "cpu memory")
      .file("a/memory.max", std::to_string(512 * kMiB))
      .file("a/cpu.max", "max 100000")
      .file("a/b/memory.max", "max")
      .file("a/b/cpu.max", "150000 100000")
      .file("a/c/memory.max", std::to_string(256 * kMiB))
      .file("d/memory.max", "max");
  CHECK(tree.limits("0::/a/b\n").memory_bytes == 512 * kMiB);
  CHECK(tree.limits("0::/a/b\n").cores == 2);
  CHECK(tree.limits("0::/a/c\n").memory_bytes == 256 * kMiB);
  CHECK(tree.limits("0::/a/c\n").cores == 0);
  CHECK(tree.limits("0::/d\n").memory_bytes == 0);
  CHECK(tree.limits("0::/\n").memory_bytes == 0);
  // In a container without a namespace of its own the path is one of outside.
  tree.file("memory.max", std::to_string(100 * kMiB)).file("cpu.max", "50000 100000");
  CHECK(tree.limits("0::/docker/0123\n").memory_bytes == 100 * kMiB);
  CHECK(tree.limits("0::/docker/0123\n").cores == 1);
  CHECK(tree.limits("0::/../../a/b\n").memory_bytes == 100 * kMiB);
}

TEST_CASE("control groups, version 1: a folder for each controller") {
  Tree tree;
  tree.file("memory/memory.limit_in_bytes", "9223372036854771712")
      .file("memory/docker/x/memory.limit_in_bytes", std::to_string(300 * kMiB))
      .file("memory/docker/x/inner/memory.limit_in_bytes", "9223372036854771712")
      .file("cpu,cpuacct/docker/x/cpu.cfs_quota_us", "300000")
      .file("cpu,cpuacct/docker/x/cpu.cfs_period_us", "100000")
      .file("cpu,cpuacct/docker/y/cpu.cfs_quota_us", "-1")
      .file("cpu,cpuacct/docker/y/cpu.cfs_period_us", "100000");
  const auto limits =
      tree.limits("9:name=systemd:/docker/x\n4:memory:/docker/x/inner\n1:cpu,cpuacct:/docker/x\n");
  CHECK(limits.memory_bytes == 300 * kMiB);
  CHECK(limits.cores == 3);
  CHECK(tree.limits("4:memory:/\n1:cpu,cpuacct:/docker/y\n").memory_bytes == 0);
  CHECK(tree.limits("4:memory:/\n1:cpu,cpuacct:/docker/y\n").cores == 0);
}

TEST_CASE("control groups: what cannot be read is no limit") {
  Tree tree;
  tree.file("memory.max", "nonsense")
      .file("cpu.max", "100000")
      .file("a/cpu.max", "x y")
      .file("b/memory.max", "")
      .file("c/memory.max", "-5")
      .file("d/memory.max", "0");
  for (const char* membership : {"", "\n", "0", "0:", "0::", "0::/a", "0::/b", "0::/c", "0::/d",
                                 "::::", "4:memory:", "4:memory,cpu:/x\n"}) {
    CAPTURE(membership);
    CHECK(tree.limits(membership).memory_bytes == 0);
    CHECK(tree.limits(membership).cores == 0);
  }
  CHECK(control_group_limits("0::/\n", "/no/such/folder").memory_bytes == 0);
  CHECK(usable_cores() >= 1);
  CHECK(usable_memory_bytes() > 0);
}

}  // namespace tetrad::server
