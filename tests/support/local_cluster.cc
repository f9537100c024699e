// SPDX-License-Identifier: Apache-2.0
#include "tests/support/local_cluster.h"

#include <deque>

#include "base/byte_io.h"
#include "cql/execute/aggregate_fold.h"
#include "cql/grammar/parser.h"
#include "cql/types/literal.h"
#include "replication/meta/meta_command.h"

namespace tetrad::tests {

Task<Result<void>> LocalCoordinator::write(std::vector<storage::Mutation> mutations,
                                           replication::WriteOptions options) {
  deadline = options.deadline;
  written = mutations;
  for (const auto& mutation : mutations) {
    base::OneShot<Result<void>> done;
    store_.apply(mutation,
                 [setter = done.setter()](Result<void> result) { setter.set(std::move(result)); });
    auto result = co_await done;
    if (!result) co_return std::unexpected(std::move(result).error());
    note_changes(mutation);
  }
  co_return Result<void>();
}

namespace {

constexpr BytesView kShard = "local";

/// The row with the deltas added to its one shard.
Bytes add_to(BytesView before, const std::vector<replication::CounterDelta>& deltas,
             BytesView key_cell, int64_t timestamp_us) {
  std::map<uint32_t, int64_t> totals;
  for (const auto& delta : deltas) totals[delta.column_id] += delta.delta;
  storage::RowRecordReader reader;
  storage::Cell cell;
  if (!before.empty() && reader.open(before)) {
    while (reader.next(cell)) {
      const auto total = totals.find(cell.column_id);
      if (total != totals.end()) total->second += *replication::decode_total(cell.value);
    }
  }
  storage::RowRecord record;
  std::deque<Bytes> values;
  const auto put = [&](uint32_t column_id, bool has_path, BytesView value) {
    storage::Cell& added = record.cells.emplace_back();
    added.column_id = column_id;
    added.timestamp_us = timestamp_us;
    added.has_path = has_path;
    if (has_path) added.path = kShard;
    added.value = value;
  };
  if (!key_cell.empty()) put(storage::kKeyCellColumnId, false, key_cell);
  for (const auto& [id, total] : totals)
    put(id, true, values.emplace_back(replication::encode_total(total)));
  Bytes out;
  storage::encode_row_record(record, out);
  return out;
}

}  // namespace

Task<Result<void>> LocalCoordinator::increment(
    std::vector<replication::CounterIncrement> increments, replication::WriteOptions options) {
  deadline = options.deadline;
  for (const auto& increment : increments) {
    // One row after another: a row that is named twice is counted twice.
    for (size_t i = 0; i < std::max<size_t>(increment.rows.size(), 1); ++i) {
      storage::ReadCommand command;
      command.incarnation = increment.incarnation;
      command.schema_version = increment.schema_version;
      command.position = increment.position;
      command.partition_key = increment.partition_key;
      command.rows = {i < increment.rows.size() ? increment.rows[i].clustering_key : "\xFF"};
      auto before = co_await read(std::move(command),
                                  {.level = ConsistencyLevel::kOne, .deadline = options.deadline});
      if (!before) co_return std::unexpected(std::move(before).error());
      storage::Mutation mutation;
      mutation.incarnation = increment.incarnation;
      mutation.schema_version = increment.schema_version;
      mutation.position = increment.position;
      mutation.partition_key = increment.partition_key;
      BytesView header, row;
      for (const auto& partition : before->partitions) {
        header = partition.header;
        if (!partition.rows.empty()) row = partition.rows.front().record;
      }
      const int64_t timestamp_us = next_timestamp_us();
      if (i == 0 && !increment.statics.empty())
        mutation.header = add_to(header, increment.statics, {}, timestamp_us);
      if (i < increment.rows.size()) {
        const auto& of = increment.rows[i];
        mutation.rows.push_back(
            {of.clustering_key, add_to(row, of.deltas, of.key_cell, timestamp_us)});
      }
      std::vector<storage::Mutation> mutations;
      mutations.push_back(std::move(mutation));
      auto done = co_await write(std::move(mutations), options);
      if (!done) co_return std::unexpected(std::move(done).error());
    }
  }
  co_return Result<void>();
}

Task<Result<bool>> LocalCoordinator::write_if(replication::ConditionalStatement& statement,
                                              replication::ConditionalOptions options) {
  storage::ReadCommand command = statement.read_command();
  command.now_s = now_us() / 1'000'000;
  auto rows = co_await read(std::move(command),
                            {.level = options.serial_level, .deadline = options.deadline});
  if (!rows) co_return std::unexpected(std::move(rows).error());
  contention_deadline = options.contention_deadline;
  for (int i = 1; i < decisions; ++i) {
    auto earlier = co_await statement.decide(*rows, next_moment());
    if (!earlier) co_return std::unexpected(std::move(earlier).error());
  }
  const replication::ConditionalMoment moment = next_moment();
  auto mutation = co_await statement.decide(*rows, moment);
  if (!mutation) co_return std::unexpected(std::move(mutation).error());
  if (!*mutation) co_return false;
  std::vector<storage::Mutation> mutations;
  mutations.push_back(std::move(**mutation));
  auto done = co_await write(std::move(mutations), {options.commit_level, options.deadline});
  if (!done) co_return std::unexpected(std::move(done).error());
  co_return true;
}

void LocalCoordinator::note_changes(const storage::Mutation& mutation) {
  const auto note = [&](std::optional<Bytes> clustering_key) {
    const uint64_t number = changes_end() + 1;
    uint64_t& last = logged_[{mutation.incarnation.value, mutation.partition_key, clustering_key}];
    change_log_.erase(last);
    last = number;
    LoggedChange logged{mutation.incarnation,
                        reactor_.wall_time_us(),
                        {mutation.position, mutation.partition_key, std::move(clustering_key)}};
    change_log_.emplace(number, std::move(logged));
  };
  if (!mutation.header.empty() && !storage::decode_row_record(mutation.header)->cells.empty()) {
    note(std::nullopt);
  }
  for (const storage::RowChange& row : mutation.rows) note(row.clustering_key);
}

Task<Result<storage::ReadResult>> LocalCoordinator::read(storage::ReadCommand command,
                                                         replication::ReadOptions options) {
  deadline = options.deadline;
  level = options.level;
  by_index = command.by_index;
  row_limit = command.row_limit;
  command.by_index.reset();  // the store has built none: all rows are read, as by any coordinator
  ++reads;
  command.live_only = true;
  const uint64_t bytes_max = command.bytes_max;
  base::OneShot<Result<storage::ReadResult>> done;
  store_.read(std::move(command), options.deadline,
              [setter = done.setter()](Result<storage::ReadResult> result) {
                setter.set(std::move(result));
              });
  auto result = co_await done;
  if (result && on_read) on_read(*result);
  if (result) storage::withhold_if_larger(*result, bytes_max);
  co_return result;
}

Task<Result<std::optional<replication::NearestNames>>> LocalCoordinator::nearest(
    storage::ReadCommand command, replication::ReadOptions options) {
  if (!knows_nearest) co_return std::nullopt;
  nearest_asked.push_back(command.nearest->rows_max);
  command.live_only = true;
  base::OneShot<Result<storage::ReadResult>> done;
  store_.read(std::move(command), options.deadline,
              [setter = done.setter()](Result<storage::ReadResult> result) {
                setter.set(std::move(result));
              });
  auto result = co_await done;
  if (!result) co_return std::unexpected(std::move(result.error()));
  std::vector<storage::ReplicaReply> replies;
  replies.push_back({{}, std::move(*result)});
  TETRAD_CO_TRY(replication::NearestNames names, replication::join_names(replies));
  if (on_nearest) on_nearest(names);
  co_return names;
}

std::optional<Result<storage::ReadEnd>> LocalCoordinator::read_here(
    storage::ReadCommand& command, const replication::ReadOptions& options,
    storage::RowSink& sink) {
  deadline = options.deadline;
  by_index = command.by_index;
  if (command.by_index) return std::nullopt;
  command.live_only = true;
  auto end = store_.read_here(command, sink);
  if (++reads_here % 2 == 0) return std::nullopt;
  return end;
}

Task<Result<std::vector<storage::ReadResult>>> LocalCoordinator::read_many(
    std::vector<storage::ReadCommand> commands, replication::ReadOptions options) {
  std::vector<storage::ReadResult> results;
  for (auto& command : commands) {
    auto result = co_await read(std::move(command), options);
    if (!result) co_return std::unexpected(std::move(result).error());
    results.push_back(std::move(*result));
  }
  co_return results;
}

Task<Result<replication::ChangesPage>> LocalCoordinator::changes(
    replication::ChangesCommand command, replication::ReadOptions options) {
  deadline = options.deadline;
  ++changes_read;
  replication::ChangesPage page;
  uint64_t after = 0;
  const auto place = [&](uint64_t number) {
    Bytes next;
    base::ByteWriter writer(next);
    writer.u32(command.incarnation.value);
    writer.u64(number);
    return next;
  };
  if (command.after.empty()) {
    page.must_scan = command.since_us < changes_since_us;
  } else {
    if (!command.after.starts_with(place(0).substr(0, 4)))
      co_return fail(ErrorCode::kInvalid, "The table was dropped or truncated");
    base::ByteReader reader(BytesView(command.after).substr(4));
    after = *reader.read_u64();
    page.must_scan = after < changes_forgotten;
  }
  if (page.must_scan) after = changes_end();
  for (const auto& [number, logged] : change_log_) {
    if (number <= after || logged.incarnation != command.incarnation) continue;
    if (command.after.empty() && logged.arrived_us < command.since_us) continue;
    if (command.partition && (command.partition->position != logged.change.position ||
                              command.partition->partition_key != logged.change.partition_key))
      continue;
    if (page.changes.size() == command.changes_max) {
      page.exhausted = false;
      break;
    }
    page.changes.push_back(logged.change);
    after = number;
  }
  page.next = place(page.exhausted ? changes_end() : after);
  co_return page;
}

Task<Result<replication::Counted>> LocalCoordinator::count(storage::ReadCommand command,
                                                           replication::ReadOptions options) {
  command.count_only = true;
  if (command.fold == nullptr) {
    auto counted = co_await count_range(std::move(command), options);
    co_return counted;
  }
  if (!folds) co_return replication::Counted();
  command.row_limit = 1 + ++folded % 4;
  // What goes to a replica is bytes.
  Bytes encoded;
  storage::encode_read_command(command, encoded);
  TETRAD_CO_TRY(command, storage::decode_read_command(encoded, cql::read_aggregate_fold));
  const RingPosition middle = RingPosition{0, 0};
  if (!command.is_range || command.fold->in_order() || middle <= command.range.start ||
      command.range.end <= middle) {
    auto counted = co_await count_range(std::move(command), options);
    co_return counted;
  }
  storage::ReadCommand left = command;
  left.range.end = command.range.start = middle;
  const storage::FoldPlanPtr fold = command.fold;
  auto second = co_await count_range(std::move(command), options);
  if (!second || !second->folded) co_return second;
  auto first = co_await count_range(std::move(left), options);
  if (!first || !first->folded) co_return first;
  const std::vector<Bytes> states{std::move(*first->folded), std::move(*second->folded)};
  replication::Counted counted{first->rows + second->rows, first->weight + second->weight, {}};
  TETRAD_CO_TRY(counted.folded, fold->join(states));
  co_return counted;
}

Task<Result<replication::Counted>> LocalCoordinator::count_range(storage::ReadCommand command,
                                                                 replication::ReadOptions options) {
  replication::Counted counted;
  while (true) {
    auto result = co_await read(command, options);
    if (!result) co_return std::unexpected(std::move(result).error());
    counted.rows += result->live_row_count;
    counted.weight += result->count->weight;
    if (command.fold != nullptr && !result->count->folded) {
      ++given_up;
      co_return counted;
    }
    if (command.fold != nullptr) command.fold_state = *result->count->folded;
    if (on_fold) on_fold(command.fold->spec(), command.fold_state);
    if (result->exhausted) {
      if (command.fold != nullptr) counted.folded = std::move(command.fold_state);
      co_return counted;
    }
    const bool same = command.resume_after && result->complete_up_to.clustering_key &&
                      command.resume_after->partition_key == result->complete_up_to.partition_key;
    command.partition_rows_done =
        (same ? command.partition_rows_done : 0) + result->count->rows_of_last;
    command.resume_after = std::move(result->complete_up_to);
  }
}

replication::ConditionalMoment LocalCoordinator::next_moment() {
  const int64_t timestamp_us = next_timestamp_us();
  return {timestamp_us, timestamp_us};
}

int64_t LocalCoordinator::next_timestamp_us() {
  last_timestamp_us_ = std::max(last_timestamp_us_ + 1, reactor_.wall_time_us());
  return last_timestamp_us_;
}

LocalMeta::LocalMeta() {
  base::Random random(1);
  self_.value = base::make_random_uuid(random);
  replication::BootstrapCluster bootstrap;
  bootstrap.cluster_id = base::make_random_uuid(random);
  bootstrap.cluster_name = "test";
  bootstrap.secret = Bytes(32, 's');
  bootstrap.node.host = self_;
  bootstrap.node.address = "127.0.0.1";
  bootstrap.node.data_center = "datacenter1";
  bootstrap.node.rack = "rack1";
  bootstrap.node.state = replication::NodeState::kNormal;
  bootstrap.node.format = replication::kFormatNewest;
  replication::MetaCommand command;
  command.id = base::make_random_uuid(random);
  command.origin = self_;
  command.body = std::move(bootstrap);
  state_ = replication::apply_meta_command(std::make_shared<replication::MetaState>(), MetaIndex{1},
                                           command)
               .state;
}

void LocalMeta::set_format(replication::ClusterFormat format) {
  auto state = std::make_shared<replication::MetaState>(*state_);
  state->format = format;
  state_ = std::move(state);
}

std::shared_ptr<void> LocalMeta::subscribe(Listener listener) {
  auto token = std::make_shared<int>(0);
  listeners_.emplace_back(token, std::move(listener));
  return token;
}

Result<void> LocalMeta::apply(replication::SchemaChange change) {
  base::Random random(state_->applied.value + 1);
  replication::MetaCommand command;
  command.id = base::make_random_uuid(random);
  command.origin = self_;
  command.body = std::move(change);
  auto applied =
      replication::apply_meta_command(state_, MetaIndex{state_->applied.value + 1}, command);
  const auto before = std::exchange(state_, applied.state);
  for (auto& [token, listener] : listeners_) {
    if (!token.expired()) listener(before, state_);
  }
  return applied.outcome;
}

Task<Result<void>> LocalMeta::change_schema(replication::SchemaChange change, base::Deadline,
                                            std::vector<std::string>*) {
  co_return apply(std::move(change));
}

class LocalCluster::InlinePool final : public base::IoPool {
 public:
  void run(base::Reactor& reactor, base::IoDuty, uint32_t, base::Callback work,
           base::Callback done) override {
    work();
    reactor.post(std::move(done));
  }
  void read(base::Reactor& reactor, base::Deadline, base::Callback work, ReadDone done) override {
    work();
    reactor.post([done = std::move(done)]() mutable { done({}); });
  }
};

LocalCluster::LocalCluster() : pool_(std::make_unique<InlinePool>()) {
  disk_ = std::make_shared<storage::MemoryDisk>();
  factory_ = storage::make_memory_store_factory(disk_, {});
  auto store = factory_->open("data", reactor, *pool_);
  TETRAD_ASSERT(store.has_value());
  store_ = std::move(*store);
  coordinator = std::make_unique<LocalCoordinator>(reactor, *store_);
  virtual_tables_ = cql::make_system_tables(meta, {});
  take_schema();
}

LocalCluster::~LocalCluster() = default;

void LocalCluster::take_schema() {
  if (schema_ && schema_->version() == meta.snapshot()->schema_version) return;
  schema_ =
      cql::SchemaSnapshot::build(*meta.snapshot(), schema_.get(), virtual_tables_->keyspaces());
}

Result<cql::StatementPtr> LocalCluster::prepared(std::string_view text) {
  take_schema();
  TETRAD_TRY(const auto parsed, cql::parse_with_markers(text));
  const cql::PrepareContext context{schema_, client.keyspace, settings, parsed.marker_names};
  return cql::prepare_statement(parsed.statement, context);
}

cql::StatementPtr LocalCluster::prepare(std::string_view text) {
  auto statement = prepared(text);
  if (!statement) throw std::runtime_error(statement.error().message);
  return std::move(*statement);
}

std::string LocalCluster::bind(std::string_view text) {
  const auto statement = prepared(text);
  if (!statement) return "error: " + statement.error().message;
  std::string out;
  for (const auto& spec : (*statement)->bind_variables()) {
    if (!out.empty()) out += ", ";
    out += spec.name + " " + spec.type->cql_text();
  }
  out += " | pk";
  for (const auto index : (*statement)->partition_key_indexes()) out += " " + std::to_string(index);
  if ((*statement)->result_metadata()) {
    out += " |";
    for (const auto& spec : (*statement)->result_metadata()->columns) {
      out += (out.ends_with("|") ? " " : ", ") + spec.name + " " + spec.type->cql_text();
    }
  }
  return out;
}

Result<cql::StatementResult> LocalCluster::execute(const cql::Statement& statement,
                                                   std::span<const cql::BoundValue> values) {
  if (values.size() != statement.bind_variables().size()) {
    return fail(ErrorCode::kInvalid, "Invalid amount of bind variables");
  }
  take_schema();
  const int64_t now_s =
      options.now_in_seconds ? *options.now_in_seconds : reactor.wall_time_us() / 1'000'000;
  cql::ExecuteContext context{reactor, *coordinator, meta,    *virtual_tables_, settings,
                              random,  scripts,      answers, schema_,          client,
                              options, {},           now_s};
  context.disk_guard = &disk_guard;
  auto result = run_task(reactor, statement.execute(context, values));
  warnings = context.warnings;
  charge = context.charge;
  return result;
}

Result<cql::StatementResult> LocalCluster::execute(const cql::StatementPtr& statement,
                                                   std::vector<cql::BoundValue> values) {
  return execute(*statement, values);
}

Result<cql::StatementResult> LocalCluster::execute_batch(cql::BatchType type,
                                                         std::span<const cql::BatchEntry> entries) {
  take_schema();
  cql::ExecuteContext context{reactor,
                              *coordinator,
                              meta,
                              *virtual_tables_,
                              settings,
                              random,
                              scripts,
                              answers,
                              schema_,
                              client,
                              options,
                              {},
                              reactor.wall_time_us() / 1'000'000};
  context.disk_guard = &disk_guard;
  auto result = run_task(reactor, cql::execute_protocol_batch(context, type, entries));
  warnings = context.warnings;
  charge = context.charge;
  return result;
}

std::string LocalCluster::print(const Result<cql::StatementResult>& result, bool with_header) {
  if (!result) return "error: " + result.error().message;
  if (const auto* rows = std::get_if<cql::RowsResult>(&*result)) {
    std::string out;
    const auto& columns = rows->metadata->columns;
    if (with_header) {
      for (size_t i = 0; i < columns.size(); ++i) out += (i == 0 ? "" : " | ") + columns[i].name;
    }
    base::ByteReader reader(rows->cells);
    for (uint32_t r = 0; r < rows->row_count; ++r) {
      if (!out.empty()) out += "\n";
      for (size_t i = 0; i < columns.size(); ++i) {
        const auto size = reader.read_i32();
        TETRAD_ASSERT(size.has_value());
        cql::OptionalView value;
        if (*size >= 0) value = *reader.read_raw(static_cast<size_t>(*size));
        out += (i == 0 ? "" : " | ") + cql::to_cql_literal(*columns[i].type, value);
      }
    }
    TETRAD_ASSERT(reader.at_end());
    return out;
  }
  if (const auto* use = std::get_if<cql::SetKeyspaceResult>(&*result)) {
    client.keyspace = use->keyspace;
  }
  return "ok";
}

std::string LocalCluster::cql(std::string_view text) {
  warnings.clear();
  auto statement = prepared(text);
  if (!statement) return "error: " + statement.error().message;
  return print(execute(*statement, {}));
}

std::string LocalCluster::rows(std::string_view text) {
  auto statement = prepared(text);
  if (!statement) return "error: " + statement.error().message;
  return print(execute(*statement, {}), false);
}

std::string LocalCluster::error(std::string_view text) {
  const std::string answer = cql(text);
  return answer.starts_with("error: ") ? answer.substr(7) : answer;
}

std::string LocalCluster::pages(std::string_view text, int32_t page_size) {
  auto statement = prepared(text);
  if (!statement) return "error: " + statement.error().message;
  std::string out;
  options.page_size = page_size;
  options.paging_position.reset();
  for (int page = 0; page < 1000; ++page) {
    auto result = execute(*statement, {});
    const auto* rows = result ? std::get_if<cql::RowsResult>(&*result) : nullptr;
    if (page != 0) out += "\n--\n";
    out += print(result, false);
    if (rows == nullptr || !rows->next_position) break;
    options.paging_position = rows->next_position;
  }
  options.page_size = -1;
  options.paging_position.reset();
  return out;
}

}  // namespace tetrad::tests
