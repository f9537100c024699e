// SPDX-License-Identifier: Apache-2.0
// What the load generator asks: tables, statements, and the values of request number i, which
// depend on i and the seed only.
//
// Tables: kv (one row for each partition), ts (100 rows for each), w (grows with each run of write
// and batch), and one each for wide rows, maps, leases of conditional statements, counters and an
// index.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "base/bytes.h"

namespace tetrad::bench {

/// The size of the data that a workload works on.
/// `seed` differs from run to run, so that a second run does not find the keys of the first in
/// caches.
struct Scale {
  uint64_t rows = 1'000'000;    // of table kv, a partition each
  uint64_t partitions = 2'000;  // of 100 rows each, of table ts
  int value_bytes = 256;
  uint64_t seed = 1;
};

/// One request: a statement and what is bound to it.
/// Made by Workload::make into the same object again and again, so that the client allocates
/// little.
struct Operation {
  size_t statement = 0;  // index in Workload::statements
  std::vector<Bytes> values;
};

/// A kind of load: its statements, and how its requests are made.
/// Add one by a row of make_workloads(), and its table to schema_statements().
struct Workload {
  // As the command line names it, and its line of --help.
  std::string name, help;
  // Prepared on each connection in this order.
  std::vector<std::string> statements;  // "{}" stands for the keyspace
  /// Makes `operation` the request with this number; its `values` may hold those of an older one.
  std::function<void(uint64_t number, Operation& operation)> make;
  uint64_t count = UINT64_MAX;    // requests in all; UINT64_MAX: until time is up
  int in_flight_max = INT32_MAX;  // scans are not piled up
};

/// "{}" stands for the keyspace. The statements drop what is there.
std::vector<std::string> schema_statements();
/// All workloads, in the order of --help.
/// `scale` is copied into them.
std::vector<Workload> make_workloads(const Scale& scale);

}  // namespace tetrad::bench
