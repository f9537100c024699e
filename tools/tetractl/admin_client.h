// SPDX-License-Identifier: Apache-2.0
// Asks a node's admin port over HTTP or HTTPS.
//
// The port has two kinds of requests (server/admin/admin_service.h): facts are GET and need no
// token, orders are POST with the header X-Tetrad-Token. Answers are JSON; errors come as {"error":
// "…"} with a status that is not 200.
#pragma once

#include <chrono>
#include <cstdint>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

#include <nlohmann/json.hpp>

namespace tetrad::tools {

/// Of a node, unless its option admin_port says otherwise.
inline constexpr uint16_t kAdminPort = 9180;

/// Which node is asked, and what it must be shown.
/// Made by read_command_line() of options and environment.
struct Target {
  std::string host = "127.0.0.1";
  uint16_t port = kAdminPort;
  std::string token_file;  // empty: the one that a node of this machine names
  std::string ca_file;     // empty: without TLS
  // For a connection, and for the answer to a fact. Orders may take longer.
  std::chrono::seconds time_limit{10};
};

/// Whatever came back over HTTP, before its status means anything.
struct Answer {
  unsigned status = 0;
  std::string body;
};

/// The node has answered, but not with what was asked for; or it does not answer. The text is for
/// the user.
class NodeError : public std::runtime_error {
 public:
  using std::runtime_error::runtime_error;
};

/// It does not answer at all.
/// Or it has gone in the middle of an answer: whoever waits for a node that ends expects this.
class NodeAway : public NodeError {
 public:
  using NodeError::NodeError;
};

/// It has not answered within the time limit: it hangs, has much to do, or cannot be reached. Not
/// away: a process may well be there.
class NodeSilent : public NodeError {
 public:
  using NodeError::NodeError;
};

/// Parameters of a request, in this order; empty values are left out.
using Parameters = std::vector<std::pair<std::string, std::string>>;

/// One node's admin port. Each request is a connection of its own and blocks: a fact for the
/// target's time limit at most, an order for as long as the node answers /health meanwhile. Errors:
/// NodeError.
class AdminClient {
 public:
  explicit AdminClient(Target target) : target_(std::move(target)) {}

  /// `path` begins with '/'. Values are encoded for the URL; fact() changes nothing on the node.
  nlohmann::json fact(const std::string& path, const Parameters& parameters = {});
  /// As fact(), while something long is waited for: a silent node is asked again, with one line that
  /// says so.
  nlohmann::json patient_fact(const std::string& path);
  /// With the node's token, when it wants one.
  /// Sent once without a token where none is named; the node's refusal names its file, and it is
  /// sent again.
  nlohmann::json order(const std::string& path, const Parameters& parameters = {});
  /// A fact that is no JSON.
  /// For /metrics.
  std::string text(const std::string& path);

 private:
  /// Before the first request: scripts for nodetool name JMX's port, at which a node does not
  /// listen.
  void settle_port();
  Answer get(const std::string& path);

  Target target_;
  bool is_settled_ = false, told_of_silence_ = false;
};

}  // namespace tetrad::tools
