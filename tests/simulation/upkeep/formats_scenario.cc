// SPDX-License-Identifier: Apache-2.0
// A cluster gets a new program one node at a time (replication/meta/cluster_format.h): nodes of two
// formats join, change the schema, split and write side by side, no node is sent what it does not
// read, and all that have applied the same hold the same. The new format is used once the last node
// reads it; from then on the old program is refused.
#include <map>

#include "base/sleep.h"
#include "replication/rpc/envelope.h"
#include "tests/simulation/support/tables.h"
#include "tests/simulation/upkeep/scenarios.h"

namespace tetrad::simulation {
namespace {

using replication::kFormatFirst;
using replication::kFormatNewest;
using replication::Verb;

constexpr uint8_t kMutateVersionFirst = 3;

/// Again while its members change.
Task<void> split_last(SimNode* node, TableIncarnation incarnation, bool* done) {
  const base::Deadline deadline{node->reactor().now_us() + 9'000'000};
  while (!*done && node->reactor().now_us() < deadline.at_us) {
    const partitioner::Tablet tablet = node->state()->table(incarnation)->tablets.tablets().back();
    RingPosition middle = tablet.range.start;
    middle.token = tablet.range.start.token / 2 + tablet.range.end.token / 2;
    replication::MetaCommandBody body(
        replication::SplitTablet{incarnation, tablet.id, tablet.range, middle});
    auto proposed = co_await node->node().meta_group().propose(std::move(body), deadline);
    *done = proposed.has_value();
    if (!*done) co_await base::sleep_for(node->reactor(), 200'000);
  }
}

class Formats {
 public:
  explicit Formats(uint64_t seed)
      : random_(seed * 6'151 + 3), cluster_(seed, 4, 1 + seed % 2), takes_images_(seed % 3 == 0) {
    for (size_t i = 0; i < cluster_.size(); ++i) prepare(i, kFormatFirst);
    cluster_.network().watch(
        [this](const replication::Endpoint& to, BytesView message) { note_message(to, message); });
  }

  std::string run() {
    if (auto wrong = form_with_table(cluster_); !wrong.empty()) return wrong;
    incarnation_ = cluster_[0].state()->tables.begin()->second->incarnation;
    for (const size_t index : {random_.below(2), 2 + random_.below(2)})
      if (auto wrong = restart_with(index, kFormatNewest); !wrong.empty()) return wrong;
    for (const auto format : {kFormatNewest, kFormatFirst}) {
      cluster_.add();
      prepare(cluster_.size() - 1, format);
      cluster_[cluster_.size() - 1].start();
      if (auto wrong = settle("a node joins"); !wrong.empty()) return wrong;
    }
    if (auto wrong = work(); !wrong.empty()) return wrong;
    if (cluster_[0].state()->format != kFormatFirst)
      return "the new format is used although old programs are there";
    for (size_t i = 0; i < cluster_.size(); ++i)
      if (cluster_[i].options().format == kFormatFirst)
        if (auto wrong = restart_with(i, kFormatNewest); !wrong.empty()) return wrong;
    const auto risen = [this] {
      for (size_t i = 0; i < cluster_.size(); ++i)
        if (cluster_[i].state()->format != kFormatNewest) return false;
      return true;
    };
    if (!cluster_.world().run_until(risen, 10'000'000)) return "the new format is not used";
    if (auto wrong = work(); !wrong.empty()) return wrong;
    if (new_mutations_ == 0) return "no mutation was sent in the new format";
    return refuse_old();
  }
  uint64_t trace() { return trace_of(cluster_); }

 private:
  void prepare(size_t index, replication::ClusterFormat format) {
    cluster_[index].options().format = format;
    cluster_[index].options().version = "1.0";
    // What an old program meets after its restart is the image of the state, or the commands.
    cluster_[index].options().raft_snapshot_every =
        takes_images_ ? 5 + random_.below(10) : uint64_t{1} << 40;
  }

  void note_message(const replication::Endpoint& to, BytesView message) {
    const auto decoded = replication::decode_envelope(message);
    if (!decoded || decoded->envelope.kind != replication::MessageKind::kRequest) return;
    const Verb verb = decoded->envelope.verb;
    if (verb != Verb::kMutate && verb != Verb::kMutateMerged) return;
    if (static_cast<uint8_t>(message[decoded->body_offset]) == kMutateVersionFirst) return;
    ++new_mutations_;
    for (size_t i = 0; i < cluster_.size(); ++i)
      if (cluster_[i].endpoint() == to && cluster_[i].options().format == kFormatFirst)
        misread_ = "an old program was sent a mutation that it does not read";
  }

  /// Until every node knows all nodes as they are, and all hold the same.
  std::string settle(const std::string& after) {
    const auto settled = [this] {
      if (!cluster_.is_formed() || !ended().empty()) return !ended().empty();
      for (size_t i = 0; i < cluster_.size(); ++i) {
        if (cluster_[i].state()->applied != cluster_[0].state()->applied) return false;
        for (size_t other = 0; other < cluster_.size(); ++other) {
          const auto* known = cluster_[i].state()->node(cluster_[other].node().self());
          if (known == nullptr || known->format != cluster_[other].options().format) return false;
          if (known->version != "1.0") return false;
        }
      }
      return true;
    };
    const bool in_time = cluster_.world().run_until(settled, 20'000'000);
    if (auto wrong = ended(); !wrong.empty()) return after + ": " + wrong;
    if (!in_time) return after + ": not known to all in time";
    return misread_.empty() ? compare() : misread_;
  }

  std::string ended() {
    for (size_t i = 0; i < cluster_.size(); ++i)
      if (cluster_[i].fatal()) return fmt::format("node {}: {}", i, cluster_[i].fatal()->message);
    return "";
  }

  /// Of the same index there is one state.
  std::string compare() {
    std::map<MetaIndex, Bytes> states;
    for (size_t i = 0; i < cluster_.size(); ++i) {
      Bytes state;
      replication::encode_meta_state(*cluster_[i].state(), state);
      if (states.try_emplace(cluster_[i].state()->applied, state).first->second != state)
        return fmt::format("node {} has another state of the same index", i);
    }
    return "";
  }

  std::string restart_with(size_t index, replication::ClusterFormat format) {
    cluster_[index].kill();
    cluster_.world().run_for(static_cast<int64_t>(random_.below(3'000'000)));
    cluster_[index].options().format = format;
    cluster_[index].start();
    return settle("a node was given another program");
  }

  /// The schema, a split and writes, through each node.
  std::string work() {
    for (size_t i = 0; i < cluster_.size(); ++i) {
      replication::SchemaChange change;
      const auto number = static_cast<uint8_t>(++tables_);
      change.new_tables.push_back(table_t());
      change.new_tables.back().id.value.octets[1] = number;
      change.new_tables.back().name = "t" + std::to_string(number);
      bool made = false, split = false;
      cluster_[i].spawn(change_schema_now(&cluster_[i], std::move(change), &made));
      if (!cluster_.world().run_until([&] { return made; }, 10'000'000))
        return fmt::format("node {} makes no table. {}", i, ended());
      cluster_[i].spawn(split_last(&cluster_[i], incarnation_, &split));
      if (!cluster_.world().run_until([&] { return split; }, 10'000'000))
        return fmt::format("node {} splits nothing. {}", i, ended());
      int acknowledged = 0;
      for (int row = 0; row < 5; ++row) {
        const std::string key = fmt::format("{} of {}", row, tables_);
        cluster_[i].spawn(write_row(&cluster_[i], incarnation_, {.key = key}, &acknowledged));
      }
      cluster_.world().run_for(2'500'000);
      if (acknowledged != 5) return fmt::format("{} of 5 writes succeed", acknowledged);
    }
    return settle("work was done");
  }

  /// What the last program wrote is not for the one before it.
  std::string refuse_old() {
    const size_t index = random_.below(cluster_.size());
    cluster_[index].kill();
    cluster_[index].options().format = kFormatFirst;
    cluster_[index].start();
    const auto ended = [](SimNode& node) { return [&node] { return node.fatal().has_value(); }; };
    if (!cluster_.world().run_until(ended(cluster_[index]), 20'000'000))
      return "an old program is not refused";
    const std::string there = cluster_[index].fatal()->message;
    cluster_[index].options().format = kFormatNewest;
    cluster_[index].start();
    cluster_.add();
    prepare(cluster_.size() - 1, kFormatFirst);
    SimNode& late = cluster_[cluster_.size() - 1];
    late.start();
    if (!cluster_.world().run_until(ended(late), 20'000'000))
      return "a new node with an old program is not refused";
    if (there.find("later program") == std::string::npos) return "an old program hears: " + there;
    if (late.fatal()->message.find("too old for this cluster") == std::string::npos)
      return "a new node with an old program hears: " + late.fatal()->message;
    return "";
  }

  base::Random random_;
  SimCluster cluster_;
  const bool takes_images_;
  TableIncarnation incarnation_;
  int tables_ = 0;
  uint64_t new_mutations_ = 0;
  std::string misread_;
};

}  // namespace

ScenarioResult run_formats(uint64_t seed) {
  Formats formats(seed);
  return {formats.run(), formats.trace()};
}

}  // namespace tetrad::simulation
