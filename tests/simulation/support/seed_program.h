// SPDX-License-Identifier: Apache-2.0
// The program around a simulation that takes a seed: arguments, the seeds one after another, and the
// known mistakes until a seed catches them.
#pragma once

#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <iterator>
#include <span>
#include <string>

#include <fmt/format.h>

#include "base/data_mutants.h"

namespace tetrad::simulation {

/// A known mistake by its name, and the scenario whose seeds catch it.
struct NamedMutant {
  const char* name;
  bool base::DataMutants::*flag;
  size_t scenario = 0;
  /// Has caught it, and is tried first: of mistakes that few seeds show.
  uint64_t known_seed = 1;
};
#define TETRAD_MUTANT_ROW(name) \
  { #name, &base::DataMutants::name }

/// `Simulation` is made of a seed, has run(), which says what is wrong or nothing, and trace(); it may
/// have history_text(), printed with --verbose, and kScenarios, names of an enumeration that it takes
/// after the seed. `Totals` has add(simulation) and print().
template <class Simulation, class Totals>
class SeedProgram {
 public:
  /// `last`: of the seeds from 1 that run without --seeds. All outlive it.
  SeedProgram(const char* name, std::span<const NamedMutant> mutants, unsigned long long last)
      : name_(name), mutants_(mutants), last_(last) {}

  int main(int argc, char** argv) const {
    unsigned long long first = 1, last = last_;
    size_t scenario = 0;
    bool verbose = false, good = true;
    for (int i = 1; i < argc && good; ++i) {
      if (std::strcmp(argv[i], "--mutants") == 0)
        return run_mutants(i + 1 < argc ? std::strtoull(argv[i + 1], nullptr, 10) : 1000,
                           i + 2 < argc ? argv[i + 2] : nullptr);
      if (std::strcmp(argv[i], "--verbose") == 0) {
        verbose = true;
      } else if (std::strcmp(argv[i], "--mutant") == 0 && i + 1 < argc) {
        good = switch_on(argv[++i]);
      } else if (std::strcmp(argv[i], "--scenario") == 0 && i + 1 < argc) {
        good = find_scenario(argv[++i], scenario);
      } else if (std::strcmp(argv[i], "--seeds") == 0 && i + 1 < argc) {
        const int fields = std::sscanf(argv[++i], "%llu..%llu", &first, &last);
        if (fields == 1) last = first;
        good = fields >= 1;
      } else {
        good = false;
      }
    }
    if (!good) {
      std::fprintf(stderr,
                   "usage: %s [--seeds A..B] %s[--mutant NAME] [--verbose]\n"
                   "       %s --mutants [SEEDS [NAME]]\n",
                   name_, kHasScenarios ? "[--scenario NAME] " : "", name_);
      return 2;
    }
    return run_all(scenario, first, last, verbose);
  }

 private:
  static constexpr bool kHasScenarios = requires { Simulation::kScenarios; };

  static Simulation make(uint64_t seed, size_t scenario) {
    if constexpr (kHasScenarios) {
      return Simulation(seed, static_cast<Simulation::Scenario>(scenario));
    } else {
      return Simulation(seed);
    }
  }

  static bool find_scenario(const char* name, size_t& scenario) {
    if constexpr (kHasScenarios) {
      for (size_t i = 0; i < std::size(Simulation::kScenarios); ++i) {
        if (std::strcmp(Simulation::kScenarios[i], name) != 0) continue;
        scenario = i;
        return true;
      }
    }
    return false;
  }

  /// Every fiftieth seed runs twice and must take the same steps.
  int run_all(size_t scenario, uint64_t first, uint64_t last, bool verbose) const {
    uint64_t passed = 0, failed = 0;
    Totals totals;
    for (uint64_t seed = first; seed <= last; ++seed) {
      std::string wrong, history;
      uint64_t trace = 0;
      {
        Simulation simulation = make(seed, scenario);
        wrong = simulation.run();
        trace = simulation.trace();
        totals.add(simulation);
        if constexpr (requires { simulation.history_text(); })
          if (verbose) history = simulation.history_text();
      }
      if (wrong.empty() && seed % 50 == 0) {
        Simulation again = make(seed, scenario);
        wrong = again.run();
        if (wrong.empty() && again.trace() != trace) wrong = "the same seed took other steps";
      }
      (wrong.empty() ? passed : failed)++;
      if (!wrong.empty() || verbose) {
        std::printf("%sseed %llu: %s\n", history.c_str(), static_cast<unsigned long long>(seed),
                    wrong.empty() ? "ok" : wrong.c_str());
        std::fflush(stdout);
      }
    }
    totals.print();
    std::printf("%llu passed, %llu failed\n", static_cast<unsigned long long>(passed),
                static_cast<unsigned long long>(failed));
    return failed == 0 ? 0 : 1;
  }

  int run_mutants(uint64_t seeds_most, const char* only) const {
    int passed = 0, failed = 0;
    for (const NamedMutant& mutant : mutants_) {
      if (only != nullptr && std::strcmp(only, mutant.name) != 0) continue;
      base::data_mutants = {};
      base::data_mutants.*mutant.flag = true;
      uint64_t seed = mutant.known_seed;
      std::string wrong = make(seed, mutant.scenario).run();
      for (uint64_t next = 1; wrong.empty() && next <= seeds_most; ++next)
        wrong = make(seed = next, mutant.scenario).run();
      std::printf("%-26s %s\n", mutant.name,
                  wrong.empty() ? "NOT FOUND" : fmt::format("seed {}: {}", seed, wrong).c_str());
      std::fflush(stdout);
      (wrong.empty() ? failed : passed)++;
    }
    std::printf("%d passed, %d failed\n", passed, failed);
    return failed == 0 ? 0 : 1;
  }

  bool switch_on(const char* name) const {
    for (const NamedMutant& mutant : mutants_) {
      if (std::strcmp(mutant.name, name) != 0) continue;
      base::data_mutants.*mutant.flag = true;
      return true;
    }
    return false;
  }

  const char* const name_;
  const std::span<const NamedMutant> mutants_;
  const unsigned long long last_;
};

}  // namespace tetrad::simulation
