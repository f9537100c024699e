// SPDX-License-Identifier: Apache-2.0
#include "server/runtime/process_facts.h"

#include <ctime>
#include <fcntl.h>
#include <unistd.h>

#include <catch2/catch.hpp>

namespace tetrad::server {

TEST_CASE("the facts of a process are this one's") {
  const ProcessFacts before = read_process_facts();
  CHECK(before.resident_bytes > 1 << 20);
  CHECK(before.virtual_bytes >= before.resident_bytes);
  CHECK(before.open_files >= 3);
  CHECK(before.open_files_max >= before.open_files);
  CHECK(before.start_time_seconds > 1.6e9);
  CHECK(before.start_time_seconds <= static_cast<double>(std::time(nullptr)) + 2);
  const int file = ::open("/dev/null", O_RDONLY);
  volatile uint64_t work = 0;
  while (read_process_facts().cpu_seconds <= before.cpu_seconds)
    for (int i = 0; i < 1'000'000; ++i) work = work + 1;
  CHECK(read_process_facts().open_files == before.open_files + 1);
  ::close(file);
}

TEST_CASE("the start of a machine has a name that stays") {
  CHECK(read_boot_id().size() == 36);  // a UUID
  CHECK(read_boot_id() == read_boot_id());
}

}  // namespace tetrad::server
