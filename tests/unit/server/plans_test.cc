// SPDX-License-Identifier: Apache-2.0
// How memory and descriptors are shared out, and the addresses of seeds.
#include <catch2/catch.hpp>

#include "server/config/memory_plan.h"
#include "server/config/seeds.h"
#include "server/runtime/descriptors.h"

namespace tetrad::server {

TEST_CASE("caches and budgets fit the memory, with a quarter left") {
  constexpr uint64_t kMiB = 1 << 20;
  for (const uint64_t memory_mb : {192, 256, 512, 1024, 2048, 8192, 1 << 20}) {
    for (const uint32_t shards : {1, 2, 8}) {
      if (memory_mb / shards < 96) continue;
      CAPTURE(memory_mb, shards);
      const MemoryPlan plan = plan_memory(Options(), memory_mb * kMiB, shards);
      const uint64_t memtables = plan.write_buffer * std::max<uint64_t>(4, 2 * shards);
      const uint64_t sum = plan.block_cache + plan.row_cache + plan.vector_graphs + memtables +
                           shards * plan.write_queue + plan.requests + plan.answers + plan.prepared;
      CHECK(sum <= memory_mb * kMiB * 3 / 4);
      CHECK(plan.write_buffer >= kMiB);
    }
  }
  const MemoryPlan large = plan_memory(Options(), uint64_t{64} << 30, 1);
  CHECK(large.block_cache == 512 * kMiB);
  CHECK(large.row_cache == 64 * kMiB);
  CHECK(large.write_buffer == 64 * kMiB);
  Options options;
  options.block_cache_mb = 100;
  options.row_cache_mb = 0;
  options.vector_graphs_mb = 3;
  options.write_buffer_mb = 7;
  options.request_memory_mb = 9;
  const MemoryPlan asked = plan_memory(options, 256 * kMiB, 1);
  CHECK(asked.block_cache == 100 * kMiB);
  CHECK(asked.row_cache == 0);
  CHECK(asked.vector_graphs == 3 * kMiB);
  CHECK(asked.write_buffer == 7 * kMiB);
  CHECK(asked.requests == 9 * kMiB);
  CHECK(bytes_together(asked, 1) == (100 + 3 + 4 * 7 + 9) * kMiB);
  CHECK(bytes_together(asked, 3) == (100 + 3 + 6 * 7 + 9) * kMiB);
  CHECK(bytes_together(large, 1) < uint64_t{64} << 30);
}

TEST_CASE("descriptors: clients never take those of the stores") {
  for (const uint64_t limit : {1024, 4096, 65'536, 1'048'576}) {
    for (const uint32_t stores : {1, 2, 4}) {
      CAPTURE(limit, stores);
      const auto plan = plan_descriptors(limit, stores, 65'536);
      REQUIRE(plan);
      CHECK(plan->clients >= 64);
      CHECK(plan->store_files >= 64);
      CHECK(uint64_t{stores} * (plan->store_files + plan->peers) + plan->clients < limit);
    }
  }
  CHECK(plan_descriptors(1'048'576, 1, 65'536)->clients == 65'536);
  CHECK(plan_descriptors(1'048'576, 1, 10)->clients == 10);
  CHECK(plan_descriptors(1'048'576, 1, 10)->store_files == 1024);
  const auto refused = plan_descriptors(256, 1, 65'536);
  REQUIRE_FALSE(refused);
  CHECK(refused.error().code == ErrorCode::kConfig);
  CHECK(refused.error().message.starts_with("the limit of open files is 256, a node of 1 shards"));
}

TEST_CASE("seeds: addresses and names, with ports or without; anything else is refused") {
  const auto read = [](const std::string& text) {
    const auto seeds = read_seeds(text, 7000);
    std::string out = seeds ? "" : seeds.error().message;
    if (seeds)
      for (const auto& seed : *seeds) out += (out.empty() ? "" : " ") + seed;
    return out;
  };
  CHECK(read("").empty());
  CHECK(read(" , ,").empty());
  CHECK(read("127.0.0.1, 127.0.0.2:7001 ,node-1,node_2.example.com:7") ==
        "127.0.0.1:7000 127.0.0.2:7001 node-1:7000 node_2.example.com:7");
  CHECK(read("::1") == replication::make_endpoint("::1", 7000));
  CHECK(read("[::1]:7001") == replication::make_endpoint("::1", 7001));
  CHECK(read("[::1]") == replication::make_endpoint("::1", 7000));
  for (const char* port :
       {"a:", "a:0", "a:65536", "a:7x", "a:-1", "http://a", "127.0.0.1:99999999999", "[::1]:"})
    CHECK(read(port) == fmt::format("seeds: the port of '{}' is no number from 1 to 65535", port));
  for (const char* name : {"127.0.0.256", "1.2.3", "-a", "a..b", ".", "a/b", "[::1]7", "x::y"})
    CHECK(read(name) == fmt::format("seeds: '{}' is neither an address nor a name", name));
  for (const char* blank : {"a b", "a;b", "127.0.0.1\t127.0.0.2"})
    CHECK(read(blank) == fmt::format("seeds: '{}' is neither an address nor a name; commas stand "
                                     "between seeds",
                                     blank));
  CHECK(read("127.0.0.1,[::1") == "seeds: '[::1' has a bracket without an end");
  CHECK(read(std::string(300, 'a')).ends_with("is neither an address nor a name"));
}

}  // namespace tetrad::server
