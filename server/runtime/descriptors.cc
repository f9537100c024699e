// SPDX-License-Identifier: Apache-2.0
// Divides the limit of open files. The node's own files first, then for each store its files
// (RocksDB keeps them open) and its connections to peers, then clients: a store that runs out of
// descriptors fails its writes, a client that is refused tries another node.
#include "server/runtime/descriptors.h"

#include <algorithm>
#include <sys/resource.h>

namespace tetrad::server {
namespace {

constexpr uint64_t kOwn = 384;        // logs, the local log, the admin port, what is short-lived
constexpr uint64_t kOwnOfStore = 18;  // its write-ahead log, its manifest, files being written,
                                      // the door of its clients
constexpr uint64_t kStoreFilesMost = 1024, kStoreFilesLeast = 64;
constexpr uint64_t kPeersMost = 1024, kPeersLeast = 32;
constexpr uint64_t kClientsLeast = 64;

}  // namespace

Result<DescriptorPlan> plan_descriptors(uint64_t limit, uint32_t stores, uint64_t connections_max) {
  const uint64_t count = std::max<uint32_t>(stores, 1);
  // What a node cannot do without; below it a start with an error is better than one that fails
  // under load.
  const uint64_t least =
      kOwn + count * (kOwnOfStore + kStoreFilesLeast + kPeersLeast) + kClientsLeast;
  if (limit < least) {
    return fail(ErrorCode::kConfig,
                "the limit of open files is {}, a node of {} shards needs {} at least; raise it "
                "(ulimit -n, or LimitNOFILE= of systemd)",
                limit, count, least);
  }
  const uint64_t free = limit - kOwn - count * kOwnOfStore;
  const auto part = [](uint64_t share, uint64_t least_of_it, uint64_t most) {
    return static_cast<uint32_t>(std::clamp(share, least_of_it, most));
  };
  DescriptorPlan out;
  // Half for files, an eighth for peers, the rest for clients.
  out.store_files = part(free / 2 / count, kStoreFilesLeast, kStoreFilesMost);
  out.peers = part(free / 8 / count, kPeersLeast, kPeersMost);
  out.clients = static_cast<uint32_t>(
      std::min(free - count * (out.store_files + out.peers), connections_max));
  return out;
}

// The soft limit is often 1024 while the hard one is far higher; a process may raise the first to
// the second. 0: unknown.
uint64_t raise_descriptor_limit() {
  rlimit limit{};
  if (::getrlimit(RLIMIT_NOFILE, &limit) != 0) return 0;
  if (limit.rlim_cur < limit.rlim_max) {
    limit.rlim_cur = limit.rlim_max;
    if (::setrlimit(RLIMIT_NOFILE, &limit) != 0) ::getrlimit(RLIMIT_NOFILE, &limit);
  }
  return limit.rlim_cur;
}

}  // namespace tetrad::server
