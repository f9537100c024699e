// SPDX-License-Identifier: Apache-2.0
// Reads /proc; the numbers of the fields are those of proc(5) less two, since counting begins
// behind the name.
#include "server/runtime/process_facts.h"

#include <filesystem>
#include <fstream>
#include <sstream>
#include <string>
#include <sys/resource.h>
#include <unistd.h>

namespace tetrad::server {
namespace {

/// The `number`th word, from 1.
uint64_t word_of(const std::string& text, int number) {
  std::istringstream words(text);
  std::string word;
  for (int i = 0; i < number; ++i) words >> word;
  uint64_t value = 0;
  std::istringstream(word) >> value;
  return value;
}

double boot_time_s() {
  std::ifstream file("/proc/stat");
  for (std::string line; std::getline(file, line);)
    if (line.starts_with("btime ")) return static_cast<double>(word_of(line, 2));
  return 0;
}

}  // namespace

ProcessFacts read_process_facts() {
  ProcessFacts out;
  std::ifstream file("/proc/self/stat");
  std::string line;
  std::getline(file, line);
  // The last parenthesis: the name may have parentheses, too.
  const size_t name_end = line.rfind(')');  // the name may have blanks
  if (name_end != std::string::npos) {
    const std::string rest = line.substr(name_end + 1);  // from field 3 on
    const auto ticks = static_cast<double>(sysconf(_SC_CLK_TCK));
    out.cpu_seconds = static_cast<double>(word_of(rest, 12) + word_of(rest, 13)) / ticks;
    out.start_time_seconds = boot_time_s() + static_cast<double>(word_of(rest, 20)) / ticks;
    out.virtual_bytes = word_of(rest, 21);
    out.resident_bytes = word_of(rest, 22) * static_cast<uint64_t>(sysconf(_SC_PAGESIZE));
  }
  std::error_code error;
  for (std::filesystem::directory_iterator at("/proc/self/fd", error), end; !error && at != end;
       at.increment(error))
    ++out.open_files;
  rlimit limit{};
  if (::getrlimit(RLIMIT_NOFILE, &limit) == 0) out.open_files_max = limit.rlim_cur;
  return out;
}

std::string read_boot_id() {
  std::string out;
  std::getline(std::ifstream("/proc/sys/kernel/random/boot_id"), out);
  return out;
}

}  // namespace tetrad::server
