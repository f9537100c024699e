// SPDX-License-Identifier: Apache-2.0
// Orders: verbs that change something, and those that wait for something to end. Each asks the node
// over its admin port (admin_client.h) and prints what it says. The exit code is 0 where all is
// well, 1 where something was found; errors are thrown and end in main().
#include "tools/tetractl/orders.h"

#include <charconv>
#include <cstdio>
#include <optional>
#include <thread>
#include <unistd.h>

#include <fmt/format.h>

#include "base/closest_name.h"
#include "tools/tetractl/certificates.h"
#include "tools/tetractl/command_line.h"
#include "tools/tetractl/text_table.h"
#include "tools/tetractl/views.h"

namespace tetrad::tools {

using nlohmann::json;

namespace {

// Between two looks at something that is under way.
constexpr std::chrono::milliseconds kLookAgain{300};

/// For programs, which get the node's answer; for people the exit code says it.
int answered(const json& answer, const Invocation& call) {
  if (call.as_json) fmt::print("{}\n", answer.dump(2));
  return 0;
}

/// A line that changes now and then: in place on a terminal, else every few seconds. Programs get
/// none: what they read is JSON.
class Progress {
 public:
  explicit Progress(bool as_json = false)
      : is_silent_(as_json), is_terminal_(::isatty(STDOUT_FILENO) == 1) {}
  ~Progress() { end(); }
  Progress(const Progress&) = delete;
  Progress& operator=(const Progress&) = delete;

  // The same line twice says nothing new.
  void tell(std::string line) {
    if (line == told_ || is_silent_) return;
    const auto now = std::chrono::steady_clock::now();
    if (is_terminal_) {
      // "\r", and to the end of the line what was there before goes.
      fmt::print("\r{}\033[K", line);
      is_open_ = true;
    } else if (told_.empty() || now - told_at_ >= kTellAgain) {
      fmt::print("{}\n", line);
    } else {
      return;
    }
    std::fflush(stdout);
    told_ = std::move(line);
    told_at_ = now;
  }
  /// A line that nobody may miss.
  void say(const std::string& line) {
    if (line == told_) return end();
    end();
    if (!is_silent_) fmt::print("{}\n", line);
    std::fflush(stdout);
    told_ = line;
  }
  /// The last line stays as it is; what is printed then begins a new one.
  void end() {
    if (std::exchange(is_open_, false)) fmt::print("\n");
  }

 private:
  static constexpr std::chrono::seconds kTellAgain{5};

  const bool is_silent_, is_terminal_;
  bool is_open_ = false;
  std::string told_;
  std::chrono::steady_clock::time_point told_at_;
};

/// Of a node that leaves, as /status has it.
struct Leaving {
  std::string state, to_move;
};

/// Unset: the node is not in the list, so it is removed.
std::optional<Leaving> state_in(const json& status, const std::string& host_id) {
  for (const auto& one : status.at("nodes"))
    if (one.at("host_id") == host_id)
      return Leaving{one.at("state").get<std::string>(), one.at("partitions").dump()};
  return std::nullopt;
}

/// Until a node that has said that it has left is gone, with its data closed: who goes on may delete
/// them. The process ends some milliseconds later.
void wait_until_stopped(AdminClient& node, const std::string& host_id, Progress& progress) {
  progress.say("the node has left the cluster and stops");
  try {
    while (node.patient_fact("/status").at("self") == host_id)
      std::this_thread::sleep_for(kLookAgain);
  } catch (const NodeAway&) {
    return;
  }
  throw NodeError("another node answers there");
}

/// What is printed of a node that leaves, look by look.
class LeavingWatch {
 public:
  explicit LeavingWatch(const Invocation& call) : progress_(call.as_json) {}

  /// Throws NodeError where its leaving was cancelled.
  void look(const Leaving& now) {
    if (was_leaving_ && now.state == "normal")
      throw NodeError("the node stays: its leaving was cancelled");
    was_leaving_ |= now.state == "leaving";  // the node that is asked may be late
    to_move_ = now.to_move;
    progress_.tell("replicas to move: " + to_move_);
  }
  const std::string& to_move() const { return to_move_; }
  Progress& progress() { return progress_; }

 private:
  Progress progress_;
  bool was_leaving_ = false;
  std::string to_move_ = "an unknown number of";
};

/// Until this node, which is asked, has left.
int wait_until_left(AdminClient& node, const Invocation& call) {
  LeavingWatch watch(call);
  std::string self;
  while (true) {
    json body;
    try {
      body = node.patient_fact("/status");
    } catch (const NodeAway& away) {
      throw NodeError(fmt::format(
          "{}; {} replicas were still to move when it last answered. Another node's status says "
          "whether it has left; if not, it goes on when it is started again",
          away.what(), watch.to_move()));
    }
    if (self.empty()) self = body.at("self").get<std::string>();
    if (body.at("self") != self) throw NodeError("another node answers there");
    if (body.at("health") == "out of the cluster") {
      wait_until_stopped(node, self, watch.progress());
      return answered({{"left", self}}, call);
    }
    if (const auto state = state_in(body, self)) watch.look(*state);
    std::this_thread::sleep_for(kLookAgain);
  }
}

/// Until another node is removed, as the one that is asked says.
int wait_until_removed(AdminClient& node, const Invocation& call, const std::string& host_id) {
  LeavingWatch watch(call);
  while (const auto state = state_in(node.patient_fact("/status"), host_id)) {
    watch.look(*state);
    std::this_thread::sleep_for(kLookAgain);
  }
  watch.progress().say("removed");
  return answered({{"removed", host_id}}, call);
}

/// Until the node has verified everything.
int wait_until_verified(AdminClient& node, bool as_json) {
  Progress progress(as_json);
  json body = node.patient_fact("/verification");
  while (true) {
    std::string line = fmt::format("files read: {}, physical partitions compared: {} of {}",
                                   body.at("files").dump(), body.at("compared").dump(),
                                   body.at("partitions").dump());
    if (!body.at("running").get<bool>()) {
      if (body.at("files") == 0) line += " (no file is there yet: rows are in memory and in logs)";
      progress.say(line);
      break;
    }
    // Until it knows how much there is to do.
    if (body.at("partitions") != 0) progress.tell(std::move(line));
    std::this_thread::sleep_for(kLookAgain);
    body = node.patient_fact("/verification");
  }
  if (as_json) fmt::print("{}\n", body.dump(2));
  // Every finding is printed, not the first one only.
  bool is_well = true;
  for (const char* what : {"damaged", "differing", "failed"}) {
    for (const auto& sentence : body.at(what)) {
      is_well = false;
      if (!as_json) fmt::print("{}: {}\n", what, cell_text(sentence));
    }
  }
  if (is_well && !as_json) fmt::print("all members hold the same\n");
  return is_well ? 0 : 1;
}

/// The keyspace with each of the tables named, or with none. Repeats an order that takes one.
std::vector<Parameters> table_by_table(const Invocation& call) {
  std::vector<Parameters> out;
  for (const std::string& table : call.list("tables"))
    out.push_back({{"keyspace", call.text("keyspace")}, {"table", table}});
  if (out.empty()) out.push_back({{"keyspace", call.text("keyspace")}});
  return out;
}

// Differences are an exit code of 1, mended or not: something was wrong.
int verify_view(AdminClient& node, const Invocation& call, const std::string& keyspace,
                const std::string& view) {
  node.order(
      "/verify-view",
      {{"keyspace", keyspace}, {"view", view}, {"mend", call.has("mend") ? "true" : "false"}});
  Progress progress(call.as_json);
  json body = node.patient_fact("/view-verification");
  while (body.at("running").get<bool>()) {
    const double base_share = body.at("base_share"), view_share = body.at("view_share");
    if (base_share + view_share > 0) {
      progress.tell(fmt::format(
          "compared: {:.1f} % of the base ({} rows), {:.1f} % of the view ({})", 100 * base_share,
          body.at("base_rows").dump(), 100 * view_share, body.at("view_rows").dump()));
    }
    std::this_thread::sleep_for(kLookAgain);
    body = node.patient_fact("/view-verification");
  }
  progress.end();
  const bool is_same = body.at("differences").empty() && body.at("failed").empty();
  if (call.as_json) {
    fmt::print("{}\n", body.dump(2));
    return is_same ? 0 : 1;
  }
  for (const char* what : {"differences", "failed"})
    for (const auto& sentence : body.at(what)) fmt::print("{}\n", sentence.get<std::string>());
  fmt::print(
      "rows compared: {} of the base, {} of the view; missing: {}, with other values: {}, "
      "extra: {}, mended: {}\n",
      body.at("base_rows").dump(), body.at("view_rows").dump(), body.at("missing").dump(),
      body.at("differing").dump(), body.at("extra").dump(), body.at("mended").dump());
  return is_same ? 0 : 1;
}

// Both are orders to the metadata group; the replicas move afterwards.
// `named`: a host id or an address; empty: the node that is asked.
int leave(AdminClient& node, const Invocation& call, const std::string& named) {
  Parameters parameters;
  if (!named.empty()) parameters.push_back({"host", named});
  if (call.has("force")) parameters.push_back({"force", "true"});
  const json answer = node.order(named.empty() ? "/decommission" : "/remove-node", parameters);
  // To standard error, so that output stays what a script expects.
  if (answer.contains("note"))
    fmt::print(stderr, "tetractl: {}\n", answer.at("note").get<std::string>());
  if (call.has("no-wait")) return answered(answer, call);
  if (named.empty()) return wait_until_left(node, call);
  return wait_until_removed(node, call, answer.at("host_id").get<std::string>());
}

/// nodetool's `removenode status`: what leaves, and how much of it is still to move.
int show_removals(AdminClient& node, const Invocation& call) {
  json leaving = json::array();
  for (const auto& one : node.fact("/status").at("nodes"))
    if (one.at("state") == "leaving") leaving.push_back(one);
  if (call.as_json) {
    fmt::print("{}\n", leaving.dump(2));
    return 0;
  }
  if (leaving.empty()) fmt::print("RemovalStatus: no node is leaving or being removed\n");
  for (const auto& one : leaving)
    fmt::print("RemovalStatus: {} ({}) is leaving, replicas to move: {}\n",
               cell_text(one.at("address")), cell_text(one.at("host_id")),
               cell_text(one.at("partitions")));
  return 0;
}

}  // namespace

// Answers when the last table is done; the sum is of all.
int repair(AdminClient& node, const Invocation& call) {
  uint64_t repaired = 0;
  for (Parameters parameters : table_by_table(call)) {
    parameters.push_back({"start_token", call.text("start-token")});
    parameters.push_back({"end_token", call.text("end-token")});
    repaired += node.order("/repair", parameters).at("repaired").get<uint64_t>();
  }
  if (call.as_json)
    fmt::print("{}\n", json({{"repaired", repaired}}).dump(2));
  else
    fmt::print("physical partitions repaired: {}\n", repaired);
  return 0;
}

// `verify view KEYSPACE VIEW` has the place of a keyspace and two tables: a keyspace called view
// needs another way.
int verify(AdminClient& node, const Invocation& call) {
  const std::vector<std::string> names = call.list("tables");
  if (call.has("stop")) return answered(node.order("/verify-view", {{"stop", "true"}}), call);
  if (call.text("keyspace") == "view" && names.size() == 2)
    return verify_view(node, call, names[0], names[1]);
  if (call.has("mend")) throw NodeError("--mend is of: verify view KEYSPACE VIEW");
  int code = 0;
  for (const Parameters& parameters : table_by_table(call)) {
    node.order("/verify", parameters);
    code = std::max(code, wait_until_verified(node, call.as_json));
  }
  return code;
}

int rebalance(AdminClient& node, const Invocation& call) {
  if (call.has("plan") == call.has("apply"))
    throw NodeError("rebalance --plan prints what rebalance --apply begins; say one of them");
  // The plan first: --apply prints what it begins.
  const json plan = node.fact("/rebalance-plan");
  if (call.has("apply")) node.order("/rebalance");
  if (call.as_json) {
    fmt::print("{}\n", plan.dump(2));
    return 0;
  }
  print_moves(plan, call);
  if (call.has("plan") && !plan.at("moves").empty())
    fmt::print(
        "They begin by themselves where a node is past the setting balance_start_percent; "
        "`tetractl rebalance --apply` begins them now.\n");
  return 0;
}

// By its host id or address, as status shows them.
int remove_node(AdminClient& node, const Invocation& call) {
  const std::string named = call.text("host_id_or_address");
  if (named == "status") return show_removals(node, call);
  if (named == "force")
    throw NodeError(
        "a removal ends by itself, as soon as others have the replicas; `tetractl removenode "
        "status` tells how many are still to move");
  return leave(node, call, named);
}

namespace {

/// A line for each table: a cluster has some ten thousand physical partitions.
void print_doubtful(const json& answer, bool each) {
  // An older node counts them all together.
  if (each || !answer.contains("in_doubt_by_table")) {
    for (const auto& line : answer.at("may_have_lost"))
      fmt::print("  {}\n", line.get<std::string>());
    return;
  }
  for (const auto& [table, count] : answer.at("in_doubt_by_table").items())
    fmt::print("  {}: {} physical partitions\n", table, count.get<size_t>());
  if (!answer.at("may_have_lost").empty())
    fmt::print("--verbose names the physical partitions, and --json\n");
}

}  // namespace

int remove_lost_nodes(AdminClient& node, const Invocation& call) {
  const auto named = call.list("host_ids_or_addresses");
  const std::string center = call.has("data-center") ? call.list("data-center").back() : "";
  if (named.empty() == center.empty())
    throw NodeError("say which nodes, or --data-center NAME: `tetractl status` lists both");
  const bool is_accepted = call.has("accept-loss");
  const Parameters words = {{"nodes", fmt::format("{}", fmt::join(named, ","))},
                            {"data_center", center},
                            {"loss", is_accepted ? "accepted" : ""}};
  const json answer = node.order("/remove-lost-nodes", words);
  if (call.as_json) {
    fmt::print("{}\n", answer.dump(2));
    return is_accepted ? 0 : 1;
  }
  for (const auto& one : answer["nodes"])
    fmt::print("{} {} {}\n", is_accepted ? "removed" : "gone for good?",
               one["address"].get<std::string>(), one["host_id"].get<std::string>());
  fmt::print(
      "{} of {} physical partitions that they had may lack acknowledged writes, {} have no replica "
      "left and {} empty\n",
      answer["in_doubt"].get<size_t>(), answer["partitions"].get<size_t>(),
      answer["without_any"].get<size_t>(), is_accepted ? "are" : "would be");
  print_doubtful(answer, call.has("verbose"));
  if (is_accepted) return 0;
  fmt::print("nothing was changed: say --accept-loss if these nodes will never come back\n");
  return 1;
}

int recover_metadata(AdminClient& node, const Invocation& call) {
  if (!call.has("accept-loss"))
    throw NodeError(
        "recover-metadata is for voters that will never come back (`tetractl describe-cluster` "
        "lists "
        "them): if they did, there would be two clusters. Say --accept-loss if that is meant");
  const json answer = node.order("/recover-metadata", {{"loss", "accepted"}});
  if (call.as_json)
    fmt::print("{}\n", answer.dump(2));
  else
    fmt::print(
        "this node is the only voter of the metadata group; others follow by themselves. Take out "
        "the nodes that are lost now: tetractl remove-lost-nodes\n");
  return 0;
}

int decommission(AdminClient& node, const Invocation& call) {
  if (!call.has("cancel")) return leave(node, call, "");
  const json answer = node.order("/decommission", {{"cancel", "true"}});
  if (call.as_json)
    fmt::print("{}\n", answer.dump(2));
  else
    fmt::print("the node stays\n");
  return 0;
}

int recover(AdminClient& node, const Invocation& call) {
  // It gives up acknowledged writes: never by accident.
  if (!call.has("accept-loss"))
    throw NodeError("recover gives up what may be lost: say --accept-loss if that is meant");
  const json answer = node.order("/recover", {{"loss", "accepted"}});
  if (!call.as_json) return print_losses(answer, call);
  fmt::print("{}\n", answer.dump(2));
  return 0;
}

int make_certificates(AdminClient&, const Invocation& call) {
  CertificateOrder order;
  order.directory = call.text("directory");
  order.nodes = call.list("nodes");
  order.users = call.list("client");
  order.renew = call.has("renew");
  // A certificate is made anew with the names that are said, so nothing is renewed unasked.
  if (order.renew && order.nodes.empty() && order.users.empty())
    throw NodeError(
        "--renew: say which nodes, each with all its names, and which clients (--client)");
  if (call.has("days")) {
    constexpr uint64_t kDaysMax = 36'500;
    const std::string days = call.list("days").back();
    const char* const end = days.data() + days.size();
    const auto [last, error] = std::from_chars(days.data(), end, order.days);
    if (error != std::errc() || last != end || order.days == 0 || order.days > kDaysMax)
      throw NodeError(
          fmt::format("--days is a whole number from 1 to {}, not '{}'", kDaysMax, days));
  }
  const auto made = make_certificates(order);
  if (!made) throw NodeError(made.error().message);
  if (call.as_json) {
    json out = {{"made", made->made}, {"kept", made->kept}, {"lost", json::array()}};
    for (const auto& [path, name] : made->lost)
      out["lost"].push_back({{"certificate", path}, {"name", name}});
    fmt::print("{}\n", out.dump(2));
    return 0;
  }
  for (const std::string& path : made->kept)
    fmt::print("kept {}, which was there (--renew makes it anew)\n", path);
  for (const std::string& path : made->made) fmt::print("made {}\n", path);
  for (const auto& [path, name] : made->lost)
    fmt::print("{} is not good for {} any more: say all names of a node, with commas\n", path,
               name);
  // Said each time: the key is what makes a node one of the cluster.
  fmt::print("Keep {}/ca-key.pem where no node is: whoever has it makes nodes.\n", order.directory);
  return 0;
}

namespace {

/// "[ks1, ks2]", or what stands for all.
/// As nodetool words it.
std::string names_text(const std::vector<std::string>& names, const char* all) {
  return names.empty() ? fmt::format("[{}]", all) : fmt::format("[{}]", fmt::join(names, ", "));
}

/// What nodetool's --table of one keyspace, or --kt-list, asks for: keyspace.table, with commas.
std::string tables_of(const Invocation& call) {
  if (!call.has("table")) return call.text("kt-list");
  const auto keyspaces = call.list("keyspaces");
  if (keyspaces.size() != 1 || call.has("kt-list"))
    throw NodeError("--table goes with one keyspace, and without -kt");
  std::string out;
  for (const std::string& table : call.list("table"))
    out += (out.empty() ? "" : ",") + keyspaces.front() + "." + table;
  return out;
}

}  // namespace

// nodetool's options in their three ways to name tables become two parameters.
int take_snapshot(AdminClient& node, const Invocation& call) {
  if (call.has("tag") && call.text("tag").empty())
    throw NodeError("You must supply a snapshot name, or leave out -t: then it is the time");
  const std::string tables = tables_of(call);
  const std::string keyspaces = call.has("table") ? "" : call.text("keyspaces");
  const json answer =
      node.order("/snapshot", {{"tag", call.text("tag")},
                               {"keyspaces", keyspaces},
                               {"tables", tables},
                               {"ttl", call.text("ttl")},
                               {"skip_flush", call.has("skip-flush") ? "true" : ""}});
  if (call.as_json) {
    fmt::print("{}\n", answer.dump(2));
    return 0;
  }
  // Worded as nodetool does, since scripts read it.
  const std::string tag = cell_text(answer.at("tag"));
  const std::string ttl = call.has("ttl") ? ", ttl=" + call.text("ttl") : "";
  const std::string asked =
      tables.empty() ? names_text(call.list("keyspaces"), "all keyspaces") : "[" + tables + "]";
  fmt::print(
      "Requested creating snapshot(s) for {} with snapshot name [{}] and options "
      "{{skipFlush={}{}}}\nSnapshot directory: {}\n",
      asked, tag, call.has("skip-flush"), ttl, tag);
  return 0;
}

// Either a tag or --all, which the node checks.
int clear_snapshot(AdminClient& node, const Invocation& call) {
  const json answer = node.order("/clear-snapshot", {{"tag", call.text("tag")},
                                                     {"keyspaces", call.text("keyspaces")},
                                                     {"all", call.has("all") ? "true" : ""}});
  if (call.as_json) {
    fmt::print("{}\n", answer.dump(2));
    return 0;
  }
  fmt::print("Requested clearing snapshot(s) for {} with {}\n",
             names_text(call.list("keyspaces"), "all keyspaces"),
             call.has("tag") ? "snapshot name [" + call.text("tag") + "]" : "[all snapshots]");
  return 0;
}

// nodetool asks for types one by one; without any all are shown.
int show_timeout(AdminClient& node, const Invocation& call) {
  const json timeouts = node.fact("/info").at("timeouts_ms");
  if (call.as_json) {
    fmt::print("{}\n", timeouts.dump(2));
    return 0;
  }
  const auto types = call.list("timeout_types");
  if (types.empty()) {
    for (const auto& [type, timeout_ms] : timeouts.items())
      fmt::print("Current timeout for type {}: {} ms\n", type, timeout_ms.dump());
  }
  for (const std::string& type : types) {
    if (!timeouts.contains(type)) {
      std::vector<std::string> known;
      for (const auto& [name, timeout_ms] : timeouts.items()) known.push_back(name);
      throw NodeError(fmt::format("there is no timeout type {}{} Timeout type requires one of ({})",
                                  type, base::did_you_mean(type, known, "."),
                                  fmt::join(known, ", ")));
    }
    fmt::print("Current timeout for type {}: {} ms\n", type, timeouts.at(type).dump());
  }
  return 0;
}

int set_timeout(AdminClient& node, const Invocation& call) {
  return answered(node.order("/timeout", {{"type", call.text("timeout_type")},
                                          {"ms", call.text("timeout_in_ms")}}),
                  call);
}

// One function for two verbs: the verb's name says which.
int set_binary(AdminClient& node, const Invocation& call) {
  const char* running = call.verb->name == "enablebinary" ? "true" : "false";
  return answered(node.order("/binary", {{"running", running}}), call);
}

int set_auto_compaction(AdminClient& node, const Invocation& call) {
  const bool runs = call.verb->name == "enableautocompaction";
  if (!call.text("keyspace").empty()) {
    // What is asked for of a table may be the case of all of them.
    if (runs && node.fact("/info").at("auto_compaction_running").get<bool>())
      return answered({{"ok", true}}, call);
    throw NodeError(fmt::format(
        "files have rows of all tables: {} goes without a keyspace, for all of the node",
        call.verb->name));
  }
  return answered(node.order("/auto-compaction", {{"running", runs ? "true" : "false"}}), call);
}

// nodetool's levels are those of Java's logback; a node has four and one for everything.
int set_log_level(AdminClient& node, const Invocation& call) {
  constexpr std::string_view kUsual = "info";
  const auto words = call.list("class_and_level");
  if (words.size() > 2) throw NodeError("a class and a level are said, no more");
  std::string level(words.empty() ? kUsual : words.back());
  for (char& c : level) c = static_cast<char>(std::tolower(static_cast<unsigned char>(c)));
  if (level == "trace" || level == "all") level = "debug";
  if (words.size() == 1) level = kUsual;  // of a class alone: nodetool sets the usual one again
  if (words.size() == 2 && words.front() != "ROOT" && words.front() != "root")
    fmt::print(stderr, "tetractl: a node has one level of logging, {} has it too\n", words.front());
  return answered(node.order("/log-level", {{"level", level}}), call);
}

int print_completion(AdminClient&, const Invocation& call) {
  if (call.as_json)
    fmt::print("{}\n", json({{"bash", completion_script()}}).dump(2));
  else
    fmt::print("{}", completion_script());
  return 0;
}

}  // namespace tetrad::tools
