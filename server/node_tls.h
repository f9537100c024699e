// SPDX-License-Identifier: Apache-2.0
// What a node encrypts, by its options, and the certificates it does so with, which are read again
// when their files change; the secret by which nodes know each other without them.
#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "base/io_pool.h"
#include "base/log.h"
#include "base/metrics.h"
#include "base/tls_context.h"
#include "replication/rpc/arrival.h"
#include "server/config/options.h"
#include "server/connection/client_tls.h"

namespace tetrad::server {

/// Null: not encrypted.
struct NodeTls {
  // Each set of credentials holds the newest certificates that read; connections made later use
  // them.
  std::shared_ptr<const ClientTlsRules> clients;
  replication::InternodeEncryption internode = replication::InternodeEncryption::kNone;
  std::shared_ptr<base::TlsCredentials> nodes;
  std::shared_ptr<base::TlsCredentials> admin;
  std::shared_ptr<const replication::ClusterSecret> secret;  // null: none is asked of nodes
};

/// Reads all files that the options name. `now_s`, seconds since 1970: certificates that peers
/// refuse for their dates or purpose are errors, too; unset for a start, which is to come up with
/// them and warn. Errors: kConfig, with the option that is missing or too much, or the file and
/// what is wrong with it.
Result<NodeTls> open_node_tls(const Options& options, std::optional<int64_t> now_s);

/// Looks at the files again, every ten seconds and when asked. Belongs to one shard.
class CertificateWatch {
 public:
  /// What each of the files has come to, a line each; false: one of them does not read.
  using Done = std::function<void(bool is_well, std::vector<std::string> lines)>;

  /// All outlive it.
  /// The files are read on the pool, so that a slow disk holds up no request.
  CertificateWatch(const NodeTls& tls, base::Reactor& reactor, base::IoPool& pool, Logger logger);
  ~CertificateWatch();
  void start();
  void reload_now(Done done);
  /// For an operator: files that did not read when they were looked at last, and certificates that have
  /// expired.
  std::vector<std::string> complaints() const;
  /// When each certificate expires.
  void register_metrics(base::MetricsRegistry& metrics);

 private:
  /// Certificates that are read again when their files change.
  struct Watched {
    std::string whose;  // "clients", "nodes"
    std::shared_ptr<base::TlsCredentials> credentials;
    std::string last_error;  // logged once
  };
  // The timer's way: look(), and look_later() again. reload_now() comes beside it.
  void look_later();
  void look(Done done);
  void looked(const std::vector<Result<bool>>& results, const Done& done);
  /// Warns when the certificate is about to expire.
  void look_at_dates(const Watched& watched) const;

  base::Reactor& reactor_;
  base::IoPool& pool_;
  const Logger logger_;
  std::vector<Watched> watched_;
  // Jobs of the pool may end after this object: they hold it weakly.
  std::shared_ptr<char> alive_ = std::make_shared<char>();
};

}  // namespace tetrad::server
