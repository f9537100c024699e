// SPDX-License-Identifier: Apache-2.0
// What the admin port may ask of, and change in, how a node serves its clients.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "base/bytes.h"
#include "base/result.h"
#include "server/connection/client_facts.h"

namespace tetrad::server {

/// How long a statement of a kind may take.
struct StatementTimeout {
  std::string
      type;  // as nodetool calls it: read, range, write, counterwrite, cascontention, truncate
  uint64_t timeout_ms = 0;
};

/// A partition key that gets much of the work of a node's replicas, as one shard has counted it.
struct HotKey {
  std::string keyspace, table;
  std::string key;  // as nodetool takes one: a:b of two columns; else in hex
  int64_t partition = 0, token = 0;
  double reads = 0, writes = 0;  // request units a second, over some ten seconds
  double share = 0;              // of the work of its physical partition
};

/// Serving's side of the admin port. All on the first shard's thread.
class NodeControls {
 public:
  virtual ~NodeControls() = default;

  /// Whether clients may connect.
  virtual bool serves_clients() const = 0;
  /// False: connections end once what they have asked is answered, new ones are refused by the
  /// machine. What is the case already stays so. Errors: kConflict while the node starts or stops;
  /// kConfig: the port is taken.
  virtual Result<void> serve_clients(bool serves) = 0;
  /// `done` runs on the first shard's thread.
  virtual void clients(std::function<void(std::vector<ClientFacts>)> done) = 0;
  /// Of all shards, the heaviest first. `done` runs on the first shard's thread.
  virtual void hot_keys(std::function<void(std::vector<HotKey>)> done) = 0;

  // As they are now, in milliseconds.
  virtual std::vector<StatementTimeout> timeouts() const = 0;
  /// Of statements that begin from now on, until the node ends. Errors: kInvalid.
  virtual Result<void> set_timeout(const std::string& type, uint64_t timeout_ms) = 0;
  /// Which part of all requests is traced without having asked for it.
  virtual double trace_probability() const = 0;
  /// `probability`: from 0 to 1.
  virtual void set_trace_probability(double probability) = 0;

  /// The partition key that a text means, as nodetool's getendpoints takes it. Errors: kNotFound,
  /// kInvalid.
  virtual Result<Bytes> partition_key(const std::string& keyspace, const std::string& table,
                                      const std::string& text) const = 0;
  /// Whether each node makes the keyspace's tables of what it knows, as those of system_auth: they
  /// have no replicas and no files. With a table: whether it has that one.
  virtual bool is_computed(const std::string& keyspace, const std::string& table) const = 0;
};

}  // namespace tetrad::server
