// SPDX-License-Identifier: Apache-2.0
// Stores that are behind after a power cut: what is said of them, and the operator's word that what
// they can never fetch is given up (design, rule 20).
//
// 1. order_recover(), on the first shard, notes which nodes live and which stores are complete
//    (Sight), and asks every store of this node.
// 2. lacking_of(), on the store's thread, lists the tablets that the store can not fetch any more,
//    or says why the operator has to wait.
// 3. accept_loss(), on the first shard once all have answered: if one store must not, nothing is
//    given up. Otherwise each store that lacks something is told to go on without it.
//
// The answer names what may be lost. Nothing is given up that other members can still deliver.
#include <algorithm>
#include <set>
#include <sstream>

#include "partitioner/tablet_map.h"
#include "replication/membership/leaving.h"
#include "replication/quorum.h"
#include "replication/tablets/tablet_move.h"
#include "server/admin/admin_service.h"
#include "server/admin/json_text.h"

namespace tetrad::server {

namespace {

using json = nlohmann::json;

// Named in an answer; `count` has all.
constexpr size_t kPartitionsNamed = 1'000;

/// As seen when the order came, on the first shard; others read it.
struct Sight {
  replication::MetaSnapshot state;
  std::set<StoreAddress> complete;  // live and not behind
  std::set<HostId> live;
};

/// What one store would give up, or why it must not.
struct Lacking {
  bool is_behind = false;
  size_t count = 0;
  std::vector<std::string> partitions;
  std::string why_not;
};

struct Chances {
  bool can_be_fetched = true;  // R others have it
  size_t here = 0, needed = 0;
};

Chances chances_of(const std::vector<StoreAddress>& set, const StoreAddress& own,
                   const Sight& sight) {
  Chances out;
  size_t others_here = 0, others = 0;
  for (const StoreAddress& member : set) {
    if (member == own) continue;
    ++others;
    others_here += sight.live.contains(member.host) ? 1 : 0;
  }
  const auto needed = replication::recovering(sight.state->data_centers.get(), set, own.host);
  const auto complete = replication::members_that(set, [&](const StoreAddress& member) {
    return member != own && sight.complete.contains(member);
  });
  out.can_be_fetched = (others != 0 && needed.is_met_by(complete)) || others_here == others;
  out.here = others_here + (set.size() - others);
  // Without a quorum of members the tablet could not go on anyway.
  out.needed = replication::write_quorum(set.size());
  return out;
}

void look_at(const replication::TableInfo& table, const partitioner::Tablet& tablet,
             const StoreAddress& own, const Sight& sight, Lacking& out) {
  // While a tablet moves, both sets must be able to go on.
  for (const auto* set : {&tablet.replicas, &tablet.new_replicas}) {
    if (set->empty()) continue;
    const Chances chances = chances_of(*set, own, sight);
    if (chances.can_be_fetched) continue;
    const std::string name =
        fmt::format("{}.{}: physical partition {}, tokens {} to {}", table.keyspace, table.name,
                    tablet.id.value, tablet.range.start.token, tablet.range.end.token);
    // The first reason is enough: one stops the order.
    if (chances.here < chances.needed && out.why_not.empty())
      out.why_not = fmt::format(
          "of the {} members of {} only {} are here, and {} are needed to go on without the others",
          set->size(), name, chances.here, chances.needed);
    ++out.count;
    if (out.partitions.size() < kPartitionsNamed) out.partitions.push_back(name);
    return;
  }
}

/// On the store's thread.
Lacking lacking_of(uint32_t store, replication::DataPlane& data, HostId self, const Sight& sight) {
  Lacking out;
  out.is_behind = data.behind().is_behind(store);
  if (!out.is_behind) return out;
  const StoreAddress own{self, store};
  for (const auto& [id, table] : sight.state->tables) {
    for (const auto& tablet : table->tablets.tablets()) {
      const std::vector<StoreAddress> members = replication::all_members(tablet);
      if (std::ranges::find(members, own) != members.end() &&
          data.behind().is_behind(store, table->incarnation, tablet.range))
        look_at(*table, tablet, own, sight, out);
    }
  }
  const auto progress = data.recent_fetch().progress();
  const bool asks = std::ranges::any_of(
      progress, [store](const auto& one) { return one.store == store && one.waits_for.empty(); });
  if (out.count != 0 && asks && out.why_not.empty())
    out.why_not = fmt::format("store {} still asks the other members, wait a moment", store);
  return out;
}

}  // namespace

std::vector<std::string> AdminService::behind_lines(bool of_others) const {
  std::vector<std::string> lines;
  const auto state = parts_.node.meta().snapshot();
  for (const auto& [address, facts] : parts_.node.membership().behind_stores()) {
    const bool own = address.host == parts_.node.self();
    if (!own && !of_others) continue;
    const std::string of = own ? "" : " of " + state->address_of(address.host);
    lines.push_back(fmt::format(
        "store {}{} is behind after a power cut: it answers no read until it has fetched {} "
        "physical partitions from {}",
        address.store, of, facts.tablets_left,
        facts.waits_for.empty() ? "other members" : facts.waits_for + ", which it waits for"));
  }
  return lines;
}

void AdminService::order_recover(const HttpRequest& request, Respond respond) {
  if (request.parameter("loss") != "accepted")
    return respond(http_error(400, "loss must be `accepted`: nothing else can be ordered"));
  const auto sight = std::make_shared<Sight>();
  sight->state = parts_.node.meta().snapshot();
  const replication::BehindFacts behind = parts_.node.membership().behind_stores();
  // A node counts itself as live, whatever others say.
  for (const auto& [host, node] : sight->state->nodes)
    if (host == parts_.node.self() || parts_.node.meta().is_live(host)) sight->live.insert(host);
  for (const auto& [id, table] : sight->state->tables)
    for (const auto& tablet : table->tablets.tablets())
      for (const StoreAddress& member : replication::all_members(tablet))
        if (sight->live.contains(member.host) && !behind.contains(member))
          sight->complete.insert(member);
  // Members are used on the first shard's thread only.
  struct Round {
    size_t left;
    std::vector<Lacking> stores;
    Respond respond;
  };
  const auto round = std::make_shared<Round>(
      Round{parts_.shards.size(), std::vector<Lacking>(parts_.shards.size()), std::move(respond)});
  for (uint32_t number = 0; number < parts_.shards.size(); ++number) {
    const Shard& shard = parts_.shards[number];
    shard.reactor.post_from_any_thread([this, &data = shard.data, &main = reactor(),
                                        self = parts_.node.self(), sight, round, number] {
      Lacking lacking = lacking_of(number, data, self, *sight);
      main.post_from_any_thread([this, round, number, lacking = std::move(lacking)]() mutable {
        round->stores[number] = std::move(lacking);
        if (--round->left == 0) accept_loss(round->stores, std::move(round->respond));
      });
    });
  }
}

namespace {

/// By host ids and addresses, with commas between, or by the data center of all of them; one is empty.
Result<std::vector<HostId>> nodes_named(const replication::MetaState& state,
                                        const std::string& names, const std::string& data_center) {
  std::vector<HostId> out;
  std::istringstream list(names);
  for (std::string name; std::getline(list, name, ',');) {
    TETRAD_TRY(const HostId host, replication::host_named(state, name));
    out.push_back(host);
  }
  if (data_center.empty()) return out;
  for (const auto& [host, node] : state.nodes)
    if (node.state != replication::NodeState::kRemoved && node.data_center == data_center)
      out.push_back(host);
  if (out.empty())
    return fail(ErrorCode::kNotFound, "no node is in a data center '{}'", data_center);
  return out;
}

}  // namespace

/// Without a word about the loss it tells what would be lost, and changes nothing.
void AdminService::order_remove_lost_nodes(const HttpRequest& request, Respond respond) {
  const std::string loss = request.parameter("loss");
  if (!loss.empty() && loss != "accepted")
    return respond(http_error(400, "loss is `accepted`, or is not given"));
  const auto state = parts_.node.meta().snapshot();
  const std::string nodes = request.parameter("nodes");
  const std::string data_center = request.parameter("data_center");
  if (nodes.empty() == data_center.empty())
    return respond(http_error(400, "nodes or a data center are named, one of the two"));
  const auto hosts = nodes_named(*state, nodes, data_center);
  if (!hosts) return respond(http_refusal(hosts.error()));
  const auto lost = replication::check_lost(
      *state, *hosts, [this](HostId node) { return parts_.node.meta().is_live(node); });
  if (!lost) return respond(http_refusal(lost.error()));
  json removed = json::array();
  for (const HostId& host : *hosts)
    removed.push_back({{"host_id", host.to_string()}, {"address", state->address_of(host)}});
  json answer = {{"nodes", removed},
                 {"partitions", lost->partitions},
                 {"in_doubt", lost->in_doubt},
                 {"without_any", lost->without_any},
                 {"in_doubt_by_table", lost->by_table},
                 {"may_have_lost", lost->named},
                 {"removed", loss == "accepted"}};
  if (loss.empty()) return respond(json_response(answer));
  parts_.logger.warn(
      "by the operator's word nodes are given up that are gone for good, and what they alone had "
      "nodes={} partitions_in_doubt={} partitions_without_any_replica={}",
      hosts->size(), lost->in_doubt, lost->without_any);
  spawn(propose(this, replication::RemoveLostNodes{*hosts}),
        [respond = std::move(respond), answer = std::move(answer)](HttpResponse done) mutable {
          respond(done.status == 200 ? json_response(answer) : std::move(done));
        });
}

void AdminService::order_recover_metadata(const HttpRequest& request, Respond respond) {
  if (request.parameter("loss") != "accepted")
    return respond(http_error(400, "loss must be `accepted`: nothing else can be ordered"));
  const auto taken = parts_.node.meta_group().take_over_group();
  respond(taken ? json_response({{"ok", true}}) : http_refusal(taken.error()));
}

/// What does not decode is of no use to the node; an operator may have wanted to look at it.
void AdminService::order_drop_batches(const HttpRequest&, Respond respond) {
  parts_.node.batches().drop_apart([this,
                                    respond = std::move(respond)](Result<size_t> dropped) mutable {
    if (!dropped) return respond(http_error(500, dropped.error().message));
    if (*dropped != 0)
      parts_.logger.warn("by the operator's word logged batches are dropped count={}", *dropped);
    respond(json_response({{"dropped", *dropped}}));
  });
}

template <class Stores>
void AdminService::accept_loss(const Stores& stores, Respond respond) {
  size_t behind = 0, lost = 0;
  for (const Lacking& store : stores) {
    behind += store.is_behind ? 1 : 0;
    lost += store.count;
    if (!store.why_not.empty()) return respond(http_error(409, store.why_not));
  }
  if (behind == 0)
    return respond(http_error(409, "no store of this node is behind: nothing is given up"));
  if (lost == 0)
    return respond(http_error(
        409, "what the stores of this node lack can still be fetched from other members, and is"));
  json out = json::array();
  for (size_t number = 0; number < stores.size(); ++number) {
    if (stores[number].count == 0) continue;
    out.push_back({{"store", number},
                   {"count", stores[number].count},
                   {"partitions", stores[number].partitions}});
    const Shard& shard = parts_.shards[number];
    shard.reactor.post_from_any_thread(
        [&fetch = shard.data.recent_fetch()] { fetch.accept_loss(); });
    parts_.logger.warn(
        "by the operator's word acknowledged writes are given up that a power cut may have taken "
        "store={} partitions={}",
        number, stores[number].count);
  }
  respond(json_response({{"may_have_lost", out}}));
}

}  // namespace tetrad::server
