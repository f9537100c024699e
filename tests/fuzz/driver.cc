// SPDX-License-Identifier: Apache-2.0
// Runs a fuzz target without libFuzzer: every file of the corpus and every seed of the target as it
// is, then a bounded number of inputs, random or mutated from those, the same ones for the same
// seed.
//
//   fuzz_<target> [--inputs n] [--seed n] [--max-size n] [file or folder ...]
// An input that ends the program is left in the file crash-<target> of the working folder.
#include <algorithm>
#include <csignal>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <fcntl.h>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <string>
#include <unistd.h>
#include <vector>

#include "base/random.h"
#include "tests/fuzz/seeds.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size);
extern "C" void __sanitizer_set_death_callback(void (*callback)()) __attribute__((weak));
std::vector<std::string> fuzz_seeds() __attribute__((weak));

namespace {

using tetrad::base::Random;

// What the signal handler saves.
const std::string* current_input = nullptr;
std::string crash_file;

void save_input() {
  if (current_input == nullptr) return;
  const int file = open(crash_file.c_str(), O_CREAT | O_TRUNC | O_WRONLY, 0644);
  if (file < 0) return;
  size_t written = 0;
  while (written < current_input->size()) {
    const ssize_t n = write(file, current_input->data() + written, current_input->size() - written);
    if (n <= 0) break;
    written += static_cast<size_t>(n);
  }
  close(file);
}

void on_signal(int number) {
  save_input();
  std::signal(number, SIG_DFL);
  std::raise(number);
}

/// Runs a copy of exactly its size, so that a read past the end is seen by the address sanitizer.
void run(const std::string& input) {
  current_input = &input;
  const std::vector<uint8_t> copy(input.begin(), input.end());
  LLVMFuzzerTestOneInput(copy.data(), copy.size());
  current_input = nullptr;
}

/// Small sizes mostly, now and then up to `max`.
size_t random_size(Random& random, size_t max) {
  const size_t bound = size_t{1} << random.below(17);
  return random.below(std::min(bound, max) + 1);
}

std::string random_input(Random& random, size_t max) {
  std::string input(random_size(random, max), '\0');
  const uint64_t alphabet = random.one_in(3) ? 4 : 256;
  for (char& c : input) c = static_cast<char>(random.below(alphabet));
  return input;
}

constexpr uint64_t kInteresting[] = {0,
                                     1,
                                     0x7F,
                                     0x80,
                                     0xFF,
                                     0x7FFF,
                                     0x8000,
                                     0xFFFF,
                                     0x7FFFFFFF,
                                     0x80000000,
                                     0xFFFFFFFF,
                                     0xFFFFFFFE,
                                     0x7FFFFFFFFFFFFFFF};

void mutate_once(std::string& input, const std::vector<std::string>& pool, Random& random) {
  const size_t size = input.size();
  const size_t at = random.below(size + 1);
  switch (random.below(8)) {
    case 0:  // a bit
      if (at < size) input[at] = static_cast<char>(input[at] ^ (1 << random.below(8)));
      break;
    case 1:  // a byte
      if (at < size) input[at] = static_cast<char>(random.next());
      break;
    case 2:  // cut out
      input.erase(at, random.below(random.one_in(2) ? 4 : size + 1));
      break;
    case 3:  // put in
      input.insert(at, random_input(random, 32));
      break;
    case 4: {  // an integer at a limit, big-endian or little-endian
      const uint64_t value = kInteresting[random.below(std::size(kInteresting))];
      const size_t width = size_t{1} << random.below(4);
      const bool big = random.one_in(2);
      for (size_t i = 0; i < width && at + i < size; ++i)
        input[at + i] = static_cast<char>(value >> (8 * (big ? width - 1 - i : i)));
      break;
    }
    case 5:  // repeat a part
      input.insert(at, input.substr(random.below(size + 1), random.below(64)));
      break;
    case 6:  // end here
      input.resize(at);
      break;
    default: {  // go on as another input does
      const std::string& other = pool[random.below(pool.size())];
      input.resize(at);
      input += other.substr(random.below(other.size() + 1));
      break;
    }
  }
}

std::string mutated_input(const std::vector<std::string>& pool, Random& random, size_t max) {
  std::string input = pool[random.below(pool.size())];
  const uint64_t times = 1 + random.below(random.one_in(4) ? 16 : 4);
  for (uint64_t i = 0; i < times; ++i) mutate_once(input, pool, random);
  if (input.size() > max) input.resize(max);
  return input;
}

void add_file(const std::filesystem::path& path, std::vector<std::string>& pool) {
  std::ifstream in(path, std::ios::binary);
  pool.emplace_back(std::istreambuf_iterator<char>(in), std::istreambuf_iterator<char>());
}

void add_path(const std::filesystem::path& path, std::vector<std::string>& pool) {
  if (!std::filesystem::is_directory(path)) {
    add_file(path, pool);
    return;
  }
  std::vector<std::filesystem::path> files;
  for (const auto& entry : std::filesystem::recursive_directory_iterator(path))
    if (entry.is_regular_file()) files.push_back(entry.path());
  std::sort(files.begin(), files.end());
  for (const auto& file : files) add_file(file, pool);
}

}  // namespace

int main(int argc, char** argv) {
  uint64_t inputs = 20000, seed = 1, size_max = 1 << 16;
  std::vector<std::string> pool;
  for (int i = 1; i < argc; ++i) {
    const std::string argument = argv[i];
    uint64_t* number = argument == "--inputs"     ? &inputs
                       : argument == "--seed"     ? &seed
                       : argument == "--max-size" ? &size_max
                                                  : nullptr;
    if (number != nullptr && i + 1 < argc) {
      *number = std::strtoull(argv[++i], nullptr, 10);
    } else {
      add_path(argument, pool);
    }
  }
  crash_file = "crash-" + std::filesystem::path(argv[0]).filename().string();
  for (const int number : {SIGABRT, SIGSEGV, SIGBUS, SIGFPE, SIGILL})
    std::signal(number, on_signal);
  if (__sanitizer_set_death_callback != nullptr) __sanitizer_set_death_callback(save_input);

  if (fuzz_seeds != nullptr)
    for (auto& made : fuzz_seeds()) pool.push_back(std::move(made));
  const size_t given = pool.size();
  pool.emplace_back();
  for (const auto& input : pool) run(input);
  Random random(seed);
  for (uint64_t i = 0; i < inputs; ++i) {
    const bool fresh = pool.size() == 1 || random.one_in(4);
    run(fresh ? random_input(random, size_max) : mutated_input(pool, random, size_max));
  }
  std::printf("%zu given and %llu made inputs: no failure\n", given,
              static_cast<unsigned long long>(inputs));
  return 0;
}
