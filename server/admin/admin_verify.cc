// SPDX-License-Identifier: Apache-2.0
// Verifying: every block of this node's stores is read, then what the members of physical
// partitions hold is compared. Nothing is written but what a store keeps of its own damage. A view is
// compared with its base table by itself (replication/views/view_verifier.h).
//
// 1. order_verify() answers at once; a second order gets 409 until the verification has ended.
// 2. Each store reads all its files, on its own thread, and reports to the first shard.
// 3. When the last one has reported, the comparison of members begins.
// 4. GET /verification tells how far it is.
#include "server/admin/admin_service.h"
#include "server/admin/json_text.h"

namespace tetrad::server {

using nlohmann::json;

namespace {

template <class Figures>
uint64_t files_read(const Figures& figures) {
  uint64_t files = 0;
  for (const auto& store : figures) files += store.statistics.scrubbed_files;
  return files;
}

}  // namespace

bool AdminService::is_verifying() const {
  if (verifying_.stores_left != 0) return true;
  return verifying_.is_comparing && parts_.shards.front().data.comparison().progress().running;
}

void AdminService::order_verify(const HttpRequest& request, Respond respond) {
  const std::string keyspace = request.parameter("keyspace"), table = request.parameter("table");
  if (const auto named = check_named(keyspace, table); !named)
    return respond(http_error(404, named.error().message));
  if (is_verifying())
    return respond(http_error(409, "this node is verifying already, see GET /verification"));
  verifying_ = Verifying();
  verifying_.stores_left = parts_.shards.size();
  gather_figures({}, [this, keyspace, table](const AllFigures& figures) {
    verifying_.files_before = files_read(figures);
    for (const Shard& shard : parts_.shards) {
      shard.reactor.post_from_any_thread([this, &store = shard.store, keyspace, table] {
        store.verify([this, keyspace, table](Result<storage::ScrubSummary> summary) {
          reactor().post_from_any_thread([this, keyspace, table, summary = std::move(summary)] {
            take_verified(summary, keyspace, table);
          });
        });
      });
    }
  });
  respond(json_response({{"ok", true}}));
}

void AdminService::take_verified(const Result<storage::ScrubSummary>& summary,
                                 const std::string& keyspace, const std::string& table) {
  if (summary) {
    verifying_.files += summary->files;
    verifying_.bytes += summary->bytes;
    verifying_.damaged.insert(verifying_.damaged.end(), summary->damaged.begin(),
                              summary->damaged.end());
  } else {
    verifying_.failed.push_back("reading a store: " + summary.error().message);
  }
  // The comparison begins only when every store has been read.
  if (--verifying_.stores_left != 0) return;
  verifying_.is_comparing = parts_.shards.front().data.comparison().start(keyspace, table);
}

void AdminService::answer_verification(const HttpRequest&, Respond respond) {
  gather_figures({}, [this, respond = std::move(respond)](const AllFigures& figures) {
    respond(verify_progress(figures));
  });
}

HttpResponse AdminService::verify_progress(const AllFigures& figures) {
  replication::Comparison::Progress compared;
  if (verifying_.is_comparing) compared = parts_.shards.front().data.comparison().progress();
  json failed = verifying_.failed;
  for (const std::string& sentence : compared.failed) failed.push_back(sentence);
  // While stores read, their counters tell; those count since the start of the process.
  const uint64_t files = verifying_.stores_left == 0
                             ? verifying_.files
                             : files_read(figures) - verifying_.files_before;
  return json_response({{"running", is_verifying()},
                        {"files", files},
                        {"bytes", verifying_.bytes},
                        {"damaged", verifying_.damaged},
                        {"partitions", compared.partitions},
                        {"compared", compared.compared},
                        {"pages", compared.pages},
                        {"differing", compared.differing},
                        {"failed", failed}});
}

void AdminService::order_verify_view(const HttpRequest& request, Respond respond) {
  replication::ViewVerifier& verifier = parts_.shards.front().data.view_verifier();
  if (request.parameter("stop") == "true") {
    if (!verifier.stop()) return respond(http_error(409, "this node is comparing no view"));
    return respond(json_response({{"ok", true}}));
  }
  const Result<void> started =
      verifier.start(request.parameter("keyspace"), request.parameter("view"),
                     request.parameter("mend") == "true");
  if (!started) return respond(http_refusal(started.error()));
  respond(json_response({{"ok", true}}));
}

void AdminService::answer_view_verification(const HttpRequest&, Respond respond) {
  const replication::ViewVerifier::Progress& progress =
      parts_.shards.front().data.view_verifier().progress();
  respond(json_response({{"running", progress.running},
                         {"keyspace", progress.keyspace},
                         {"view", progress.view},
                         {"base_share", progress.base_share},
                         {"view_share", progress.view_share},
                         {"base_rows", progress.base_rows},
                         {"view_rows", progress.view_rows},
                         {"missing", progress.missing},
                         {"differing", progress.differing},
                         {"extra", progress.extra},
                         {"mended", progress.mended},
                         {"differences", progress.differences},
                         {"failed", progress.failed}}));
}

}  // namespace tetrad::server
