// SPDX-License-Identifier: Apache-2.0
// What a member does for an execution of another one, or of its own shard (view_runner.h): it gives
// its row with a promise, takes what is settled, and makes a task where a comparison has found a
// difference.
#include "base/data_mutants.h"
#include "replication/replica/place.h"
#include "replication/views/view_messages.h"
#include "replication/views/view_runner.h"

namespace tetrad::replication {

using storage::ViewRowAnswer;

void ViewRunner::on_read(const RpcContext& context, BytesView body, RpcNode::Reply reply) {
  auto request = decode_view_read(body);
  if (!request) return reply.error(request.error());
  read_as_member(context.store, *request, context.deadline,
                 [reply = std::move(reply)](Result<ViewRowAnswer> answer) mutable {
                   if (!answer) return reply.error(answer.error());
                   reply.ok(encode_view_answer(*answer));
                 });
}

// A member's part of an execution: the row as this store has it, and a promise that no execution
// with an earlier stamp counts here any more.
void ViewRunner::read_as_member(uint32_t number, const ViewReadRequest& request,
                                base::Deadline deadline, ReadDone done) {
  Store* const store = own_store(number);
  if (store == nullptr) return done(fail(ErrorCode::kNotFound, "the store is not of this shard"));
  const storage::ViewRow& row = request.row;
  const MetaSnapshot state = meta_.snapshot();
  const Place place = place_of(*state, row.base, row.position, request.epoch);
  // Who executes with an older schema would leave out views and columns, and settle the task.
  if (request.schema_version < state->schema_version && !TETRAD_MUTANT(view_old_schema_taken))
    return done(fail(ErrorCode::kStaleSchema, "the schema is a newer one"));
  switch (place.standing) {
    case MapStanding::kCurrent:
      break;
    case MapStanding::kAhead:
      return done(fail(ErrorCode::kBehind, "this node has not heard of the table yet"));
    case MapStanding::kStaleSchema:
      return done(fail(ErrorCode::kStaleSchema, "the table is gone"));
    case MapStanding::kStaleEpoch:
      return done(fail(ErrorCode::kStaleEpoch, "the set of members is another one"));
  }
  // It may lack rows and tasks (rule 20).
  if (behind_.is_behind(number, row.base, row.position))
    return done(std::unexpected(BehindStores::refusal()));
  store->views().read(row, request.stamp, deadline,
                      [this, alive = std::weak_ptr<char>(alive_), number, of = row,
                       done = std::move(done)](Result<ViewRowAnswer> answer) mutable {
                        if (answer && !alive.expired()) put_off(number, of, answer->record.size());
                        done(std::move(answer));
                      });
}

// Of a comparison that found a difference: a task that makes the row anew.
void ViewRunner::on_mend(const RpcContext& context, BytesView body, RpcNode::Reply reply) {
  auto found = decode_view_settlement(body);
  if (!found) return reply.error(found.error());
  Store* const store = own_store(context.store);
  if (store == nullptr)
    return reply.error(Error(ErrorCode::kNotFound, "the store is not of this shard"));
  store->views().add_task(found->row, std::move(found->names),
                          [reply = std::move(reply)](Result<void> written) mutable {
                            if (!written) return reply.error(written.error());
                            reply.ok({});
                          });
}

void ViewRunner::on_settle(const RpcContext& context, BytesView body, RpcNode::Reply reply) {
  auto settlement = decode_view_settlement(body);
  if (!settlement) return reply.error(settlement.error());
  settle_as_member(context.store, std::move(*settlement),
                   [reply = std::move(reply)](Result<void> settled) mutable {
                     if (!settled) return reply.error(settled.error());
                     reply.ok({});
                   });
}

// The tasks that an execution has seen are done; later ones stay.
void ViewRunner::settle_as_member(uint32_t number, storage::ViewSettlement settlement,
                                  std::move_only_function<void(Result<void>)> done) {
  Store* const store = own_store(number);
  if (store == nullptr) return done(fail(ErrorCode::kNotFound, "the store is not of this shard"));
  store->views().settle(
      settlement,
      [this, alive = std::weak_ptr<char>(alive_), key = Key{number, settlement.row},
       sequences = settlement.sequences, done = std::move(done)](Result<void> settled) mutable {
        // Forgotten here, too, so that the row is not executed again for nothing.
        if (settled && !alive.expired()) {
          const auto waiting = waiting_.find(key);
          if (waiting != waiting_.end()) drop(key, waiting->second, sequences);
        }
        done(std::move(settled));
      });
}

}  // namespace tetrad::replication
