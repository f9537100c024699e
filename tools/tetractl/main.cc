// SPDX-License-Identifier: Apache-2.0
// tetractl: the admin command. Asks a node's admin port over HTTP and prints tables, or the JSON as
// it came.
#include <cstdio>
#include <iostream>
#include <optional>
#include <thread>

#include <CLI/CLI.hpp>
#include <boost/asio/io_context.hpp>
#include <boost/asio/ip/tcp.hpp>
#include <boost/beast/core.hpp>
#include <boost/beast/http.hpp>
#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "base/closest_name.h"
#include "tools/tetractl/token.h"

namespace {

namespace asio = boost::asio;
namespace beast = boost::beast;
namespace http = boost::beast::http;
using nlohmann::json;

struct Target {
  std::string host = "127.0.0.1";
  uint16_t port = 9180;
  std::string token_file;  // empty: the one that a node of this machine names
};

struct Answer {
  unsigned status = 0;
  std::string body;
};

std::string url_encoded(const std::string& text) {
  std::string out;
  for (const char c : text) {
    const bool plain = (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') ||
                       c == '-' || c == '_' || c == '.';
    out += plain ? std::string(1, c) : fmt::format("%{:02X}", static_cast<uint8_t>(c));
  }
  return out;
}

/// One request, with a token when it is an order. Throws boost::system::system_error when the node
/// does not answer. `node`: who answered.
Answer ask_once(const Target& target, http::verb verb, const std::string& path,
                const std::string& token, asio::ip::tcp::endpoint& node) {
  asio::io_context io;
  beast::tcp_stream stream(io);
  stream.expires_after(std::chrono::minutes(10));
  asio::ip::tcp::resolver resolver(io);
  stream.connect(resolver.resolve(target.host, std::to_string(target.port)));
  node = stream.socket().remote_endpoint();
  const std::string address = node.address().to_string();
  http::request<http::empty_body> request(verb, path, 11);
  request.set(http::field::host, node.address().is_v6() ? "[" + address + "]" : address);
  if (!token.empty()) request.set("X-Tetrad-Token", token);
  request.prepare_payload();
  http::write(stream, request);
  beast::flat_buffer buffer;
  http::response_parser<http::string_body> parser;
  parser.body_limit(256u << 20);
  http::read(stream, buffer, parser);
  return {parser.get().result_int(), parser.get().body()};
}

Answer refused(const std::string& why) { return {401, json({{"error", why}}).dump()}; }

/// A node of this machine says where its token is; the others' must be named.
Answer ask(const Target& target, http::verb verb, const std::string& path) {
  asio::ip::tcp::endpoint node;
  tetrad::tools::Token token;
  if (verb == http::verb::post && !target.token_file.empty()) {
    token = tetrad::tools::read_token(target.token_file);
    if (token.text.empty()) return refused(token.problem);
  }
  Answer answer = ask_once(target, verb, path, token.text, node);
  if (answer.status != 401 || verb != http::verb::post) return answer;
  if (!token.text.empty()) return refused(target.token_file + " is not the token of this node");
  token = tetrad::tools::read_token_named_by(node, json::parse(answer.body).at("token_file"));
  if (token.text.empty()) return refused(token.problem);
  return ask_once(target, verb, path, token.text, node);
}

std::string cell_text(const json& value) {
  if (value.is_string()) return value.get<std::string>();
  if (value.is_array()) {
    std::string out;
    for (const auto& item : value) out += (out.empty() ? "" : ",") + cell_text(item);
    return out;
  }
  return value.dump();
}

std::string bytes_text(uint64_t bytes) {
  constexpr const char* units[] = {"B", "KiB", "MiB", "GiB", "TiB"};
  double value = static_cast<double>(bytes);
  size_t unit = 0;
  while (value >= 1024 && unit < 4) {
    value /= 1024;
    ++unit;
  }
  return unit == 0 ? fmt::format("{} B", bytes) : fmt::format("{:.1f} {}", value, units[unit]);
}

/// Prints objects of one shape as a table; `columns` are their keys.
void print_table(const json& rows, const std::vector<std::string>& columns) {
  std::vector<std::vector<std::string>> lines = {columns};
  for (const auto& row : rows) {
    std::vector<std::string> line;
    for (const auto& column : columns) {
      const json& value = row.at(column);
      const bool is_size = column.find("bytes") != std::string::npos && value.is_number();
      line.push_back(is_size ? bytes_text(value.get<uint64_t>()) : cell_text(value));
    }
    lines.push_back(std::move(line));
  }
  std::vector<size_t> widths(columns.size());
  for (const auto& line : lines) {
    for (size_t i = 0; i < line.size(); ++i) widths[i] = std::max(widths[i], line[i].size());
  }
  for (const auto& line : lines) {
    std::string text;
    for (size_t i = 0; i < line.size(); ++i) {
      text += i + 1 == line.size() ? line[i] : fmt::format("{:<{}}  ", line[i], widths[i]);
    }
    fmt::print("{}\n", text);
  }
}

void print_object(const json& object) {
  for (const auto& [name, value] : object.items()) {
    if (value.is_object()) {
      for (const auto& [inner, inner_value] : value.items())
        fmt::print("{}.{}: {}\n", name, inner, cell_text(inner_value));
    } else {
      fmt::print("{}: {}\n", name, cell_text(value));
    }
  }
}

/// Prints how many replicas the leaving node still has until it is gone. Without a host id it is
/// the node that is asked: it stops when it has left.
int wait_until_gone(const Target& target, const std::string& host_id) {
  std::string printed;
  while (true) {
    json body;
    try {
      body = json::parse(ask(target, http::verb::get, "/status").body);
    } catch (const boost::system::system_error&) {
      if (!host_id.empty()) throw;
      fmt::print("the node has left the cluster and stopped\n");
      return 0;
    }
    const std::string leaving = host_id.empty() ? body.at("self").get<std::string>() : host_id;
    const json* found = nullptr;
    for (const auto& node : body.at("nodes"))
      if (node.at("host_id") == leaving) found = &node;
    if (found == nullptr && !host_id.empty()) {
      fmt::print("removed\n");
      return 0;
    }
    if (found != nullptr) {
      std::string line = fmt::format("replicas to move: {}", found->at("partitions").dump());
      if (line != printed) fmt::print("{}\n", line);
      std::fflush(stdout);
      printed = std::move(line);
    }
    std::this_thread::sleep_for(std::chrono::milliseconds(300));
  }
}

/// Prints how far the node is until it has verified everything.
int wait_until_verified(const Target& target, bool as_json) {
  std::string printed;
  while (true) {
    const Answer answer = ask(target, http::verb::get, "/verification");
    const json body = json::parse(answer.body);
    const std::string line = fmt::format("files read: {}, physical partitions compared: {} of {}",
                                         body.at("files").dump(), body.at("compared").dump(),
                                         body.at("partitions").dump());
    if (!as_json && line != printed) fmt::print("{}\n", line);
    std::fflush(stdout);
    printed = line;
    if (body.at("running").get<bool>()) {
      std::this_thread::sleep_for(std::chrono::milliseconds(300));
      continue;
    }
    if (as_json) fmt::print("{}", answer.body);
    bool is_well = true;
    for (const char* what : {"damaged", "differing", "failed"}) {
      for (const auto& sentence : body.at(what)) {
        is_well = false;
        if (!as_json) fmt::print("{}: {}\n", what, sentence.get<std::string>());
      }
    }
    if (is_well && !as_json) fmt::print("all members hold the same\n");
    return is_well ? 0 : 1;
  }
}

/// The first argument that is no option and no option's value.
std::optional<std::string> first_word(int argc, char** argv) {
  for (int i = 1; i < argc; ++i) {
    const std::string word = argv[i];
    if (word == "-h" || word == "--host" || word == "-p" || word == "--port" ||
        word == "--token-file") {
      ++i;
    } else if (!word.starts_with("-")) {
      return word;
    }
  }
  return std::nullopt;
}

std::string unknown_command(const CLI::App& app, const std::string& word) {
  std::vector<std::string> names;
  for (const CLI::App* command : app.get_subcommands({})) names.push_back(command->get_name());
  const std::string close = tetrad::base::closest_name(word, names);
  return fmt::format("there is no command '{}'{}", word,
                     close.empty() ? "" : "; did you mean " + close + "?");
}

}  // namespace

int main(int argc, char** argv) {
  CLI::App app("tetractl: asks and orders a Tetrad node through its admin port");
  app.require_subcommand(1);
  // -h is the host, as in nodetool.
  app.set_help_flag("--help", "Print this help and end");
  Target target;
  bool as_json = false;
  app.add_option("-h,--host", target.host, "Address of the node (default 127.0.0.1)");
  app.add_option("-p,--port", target.port, "Its admin port (default 9180)");
  app.add_option("--token-file", target.token_file,
                 "The node's admin_token, for orders; of a node of this machine it is found")
      ->envname("TETRAD_TOKEN_FILE");
  app.add_flag("--json", as_json, "Print JSON");
  app.set_version_flag("--version", std::string("tetractl ") + TETRAD_VERSION);
  app.fallthrough();

  std::string keyspace, table, level, name, value, host_id;
  bool no_wait = false;
  uint64_t partition = 0;
  auto* status = app.add_subcommand(
      "status", "Nodes, whether they are live, and what they hold; fails unless the node serves");
  auto* ring = app.add_subcommand("ring", "Tokens of the ring and who owns them");
  auto* partitions =
      app.add_subcommand("partitions", "Physical partitions: ranges, replicas, sizes");
  partitions->add_option("keyspace", keyspace, "Only of this keyspace");
  partitions->add_option("table", table, "Only of this table");
  auto* describe =
      app.add_subcommand("describe-cluster", "Name, schema version and settings of the cluster");
  auto* flush = app.add_subcommand("flush", "Writes the node's memtables to disk");
  auto* compact = app.add_subcommand(
      "compact", "Drops what may be purged on the node, then compacts its files");
  auto* split = app.add_subcommand("split", "Splits a physical partition in two");
  split->add_option("id", partition, "Its number, see partitions")
      ->required()
      ->check([](const std::string& text) {
        const bool number = text.find_first_not_of("0123456789") == std::string::npos;
        return number ? std::string() : "'" + text + "' is no number of a partition";
      });
  auto* stats = app.add_subcommand("tablestats", "Sizes of tables and stores on the node");
  auto* log_level = app.add_subcommand("log-level", "Changes the least level that the node logs");
  log_level->add_option("level", level, "debug, info, warn or error")->required();
  auto* repair = app.add_subcommand(
      "repair",
      "Compares all replicas now and makes them equal; it happens by itself all the time");
  repair->add_option("keyspace", keyspace, "Only of this keyspace");
  repair->add_option("table", table, "Only of this table");
  auto* verify = app.add_subcommand(
      "verify",
      "Reads every block of the node's files and compares what all replicas hold; writes nothing, "
      "fails if anything is wrong");
  verify->add_option("keyspace", keyspace, "Compares only this keyspace");
  verify->add_option("table", table, "Compares only this table");
  auto* remove_node = app.add_subcommand(
      "remove-node",
      "Takes a dead node out: its replicas are rebuilt on others, its id is retired");
  remove_node->add_option("host_id", host_id, "Its host id, see status")->required();
  auto* rebalance = app.add_subcommand(
      "rebalance", "What the cluster moves, by itself, so that its nodes hold equal parts");
  bool plan = false;
  rebalance->add_flag("--plan", plan, "Print the moves that are still to be made")->required();
  auto* decommission = app.add_subcommand(
      "decommission", "The node gives its replicas to others, leaves the cluster and stops");
  for (auto* command : {remove_node, decommission})
    command->add_flag("--no-wait", no_wait, "Begin it and return");
  auto* recover = app.add_subcommand(
      "recover", "After a power cut: what the node's stores can never fetch is given up");
  bool accept_loss = false;
  recover
      ->add_flag("--accept-loss", accept_loss,
                 "Acknowledged writes may be lost; prints of which partitions")
      ->required();
  auto* setting = app.add_subcommand("setting", "Changes a setting of the whole cluster");
  setting
      ->add_option(
          "name", name,
          "max_physical_partition_mb, max_logical_partition_mb, physical_partition_ru_per_s or "
          "balance_start_percent")
      ->required();
  setting->add_option("value", value, "Its value")->required();
  for (auto* command : app.get_subcommands({}))
    command->set_help_flag("--help", "Print this help and end");

  try {
    app.parse(argc, argv);
  } catch (const CLI::ParseError& e) {
    if (e.get_exit_code() == 0) return app.exit(e);  // help, version
    std::string said = e.what();
    if (e.get_name() == "RequiredError" && app.get_subcommands().empty()) {
      const auto word = first_word(argc, argv);
      said = word ? unknown_command(app, *word) : "a command is missing";
    }
    fmt::print(stderr, "tetractl: {} (tetractl --help lists the commands)\n", said);
    return 2;
  }

  std::string path;
  http::verb verb = http::verb::get;
  if (*status) path = "/status";
  if (*ring) path = "/ring";
  if (*partitions)
    path = "/partitions?keyspace=" + url_encoded(keyspace) + "&table=" + url_encoded(table);
  if (*describe) path = "/describe-cluster";
  if (*rebalance) path = "/rebalance";
  if (*stats) path = "/tablestats";
  if (*flush || *compact || *split || *log_level || *setting || *repair || *verify ||
      *remove_node || *decommission || *recover) {
    verb = http::verb::post;
    path = *flush       ? "/flush"
           : *compact   ? "/compact"
           : *split     ? "/split?id=" + std::to_string(partition)
           : *log_level ? "/log-level?level=" + url_encoded(level)
           : *repair ? "/repair?keyspace=" + url_encoded(keyspace) + "&table=" + url_encoded(table)
           : *verify ? "/verify?keyspace=" + url_encoded(keyspace) + "&table=" + url_encoded(table)
           : *remove_node  ? "/remove-node?host=" + url_encoded(host_id)
           : *decommission ? "/decommission"
           : *recover      ? "/recover?loss=accepted"
                           : "/setting?name=" + url_encoded(name) + "&value=" + url_encoded(value);
  }
  try {
    const Answer answer = ask(target, verb, path);
    const json body = json::parse(answer.body);
    if (answer.status != 200) {
      fmt::print(stderr, "tetractl: {}\n", body.value("error", answer.body));
      return 1;
    }
    if (*verify) return wait_until_verified(target, as_json);
    if ((*remove_node || *decommission) && !no_wait) return wait_until_gone(target, host_id);
    if (as_json) {
      fmt::print("{}", answer.body);
    } else if (*status) {
      fmt::print("cluster: {}   this node: {}\n", body.at("cluster").get<std::string>(),
                 body.at("health").get<std::string>());
      for (const auto& line : body.at("warnings"))
        fmt::print("WARNING: {}\n", line.get<std::string>());
      print_table(body.at("nodes"), {"address", "live", "state", "stores", "data_center", "rack",
                                     "partitions", "bytes", "host_id", "version"});
    } else if (*ring) {
      print_table(body, {"token", "address", "rack", "live"});
    } else if (*partitions) {
      print_table(body, {"keyspace", "table", "id", "range_start", "range_end", "size_bytes",
                         "state", "replicas"});
    } else if (*rebalance) {
      print_table(body.at("moves"), {"keyspace", "table", "id", "bytes", "from", "to", "reason"});
      fmt::print("{} moves, {} bytes\n", body.at("moves").size(), body.at("bytes").dump());
    } else if (*stats) {
      print_table(body.at("tables"),
                  {"keyspace", "table", "partitions", "partitions_here", "bytes_here"});
      fmt::print("\n");
      print_table(body.at("stores"),
                  {"disk_bytes", "memtable_bytes", "cache_bytes", "row_cache_bytes",
                   "estimated_keys", "pending_compaction_bytes"});
      fmt::print("\nhints pending: {}\n", body.at("hints_pending").dump());
    } else if (*recover) {
      for (const auto& store : body.at("may_have_lost")) {
        fmt::print("store {}: acknowledged writes of {} physical partitions may be lost\n",
                   store.at("store").dump(), store.at("count").dump());
        for (const auto& line : store.at("partitions"))
          fmt::print("  {}\n", line.get<std::string>());
      }
    } else {
      print_object(body);
    }
    return *status && !body.at("health").get<std::string>().starts_with("serving") ? 1 : 0;
  } catch (const boost::system::system_error& e) {
    fmt::print(stderr, "tetractl: {}:{} does not answer: {}\n", target.host, target.port,
               e.code().message());
    return 1;
  } catch (const json::exception& e) {
    fmt::print(stderr, "tetractl: {}:{} answers what is no answer of a Tetrad node: {}\n",
               target.host, target.port, e.what());
    return 1;
  }
}
