// SPDX-License-Identifier: Apache-2.0
// What the kernel knows of this process, as Prometheus's clients export it (process_*), and of its
// machine.
//
// Read from /proc when a metric is exported; on other systems all of it is 0.
#pragma once

#include <cstdint>
#include <string>

namespace tetrad::server {

/// What cannot be read is 0.
struct ProcessFacts {
  double cpu_seconds = 0;         // user and system
  double start_time_seconds = 0;  // since the epoch
  uint64_t resident_bytes = 0, virtual_bytes = 0;
  uint64_t open_files = 0, open_files_max = 0;
};

/// Reads a few small files each time; any thread.
ProcessFacts read_process_facts();

/// Names this start of the machine (proc(5), random/boot_id); "" when it cannot be read.
std::string read_boot_id();

}  // namespace tetrad::server
