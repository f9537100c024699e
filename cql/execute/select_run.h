// SPDX-License-Identifier: Apache-2.0
// One execution of a SELECT. Its members stand where their step does:
//
//   bind_select.cc      values, limits and guardrails; where a page begins
//   execute_select.cc   the loop of a page: range or list of partitions
//   select_chunks.cc    reads, and the room that their answers take
//   select_in_place.cc  rows from this shard's store at once; aggregates that replicas fold
//   select_rows.cc      filters, masks and limits, row by row
//   nearest_rows.cc     the search for near vectors
//   select_output.cc    groups, aggregates, cells, sorting
//   select_charge.cc    what the page costs
#pragma once

#include <memory>
#include <optional>
#include <span>
#include <vector>

#include "cql/execute/access.h"
#include "cql/execute/row_materializer.h"
#include "cql/execute/select_position.h"
#include "cql/execute/statement_environment.h"
#include "cql/prepare/prepared_select.h"
#include "cql/protocol/response.h"
#include "storage/row/row_weight.h"

namespace tetrad::cql {

/// Where a row stands.
struct RowPlace {
  RingPosition position;
  BytesView partition_key;
  const BytesView* clustering_key;  // null: of the partition's static columns
  uint64_t bytes = 0;
};

/// The progress of a run; restoring it takes back a chunk that could not be read to its end.
struct SelectProgress {
  bool done_ = false;
  int64_t rows_left_ = -1, page_left_ = -1;
  Bytes current_partition_;
  Bytes partition_with_rows_;  // the last one that gave a live row
  bool started_ = false, partition_has_rows_ = false, partition_is_new_ = false;
  int64_t partition_rows_done_ = 0;
  Bytes page_end_;  // where a full page ends
  // What was looked at.
  uint64_t rows_read_ = 0, weight_read_ = 0;
  RingPosition last_position_;
};

/// One execution of a SELECT. Pages of the change feed share its parts (change_feed.h).
class SelectRun : protected SelectProgress {
 public:
  SelectRun(const SelectStatement& statement, ExecuteContext& context,
            std::span<const BoundValue> values)
      : statement_(statement),
        context_(context),
        room_(context.answers, context.client.answers),
        functions_(make_function_environment(context)),
        is_masked_(!statement.masks_.empty() &&
                   !sees_unmasked(context.client, *context.schema, *statement.table_)),
        evaluation_{values, arena_, functions_, context.now_s, nullptr, {}} {}

  Task<Result<StatementResult>> run();

 protected:
  using PartitionData = storage::PartitionData;
  using ReadCommand = storage::ReadCommand;
  using ReadEnd = storage::ReadEnd;
  using ReadResult = storage::ReadResult;

  // --- values ---

  Result<std::optional<int64_t>> limit_value(const ExpressionPtr& expression);
  Result<void> bind();
  /// Filters, index, partitions and clustering bounds; the step of bind() for WHERE.
  Result<void> bind_where();
  void warn_of_aggregate();
  Result<void> begin_sorting();
  /// bind() and set_deadline(). False: they are too much work for the loop, nothing is done, and
  /// bind_off_loop() must do them.
  Result<bool> bind_on_loop();
  /// The same on a worker.
  Task<Result<void>> bind_off_loop();
  /// Partitions are read one by one then, linearizable with conditional statements.
  bool reads_serially() const;
  Result<void> check_serial_level(std::optional<int64_t> limit);
  /// From now on; tells how long.
  Result<int64_t> set_deadline();

  /// The guardrails on the size of what is asked for.
  Result<void> check_counts();
  Result<void> check_product(uint64_t product, std::string_view key);

  /// Takes over the paging state of the request, which is there, as the last step of bind(). Errors:
  /// kProtocol, it is of another statement or of another table.
  Result<void> resume_page();
  /// After a page: the partitions before the one of the position are done.
  void skip_done_partitions();

  // --- reading ---

  /// How many more rows the next read needs; more than the page when rows may be dropped.
  uint32_t rows_wanted() const;
  void ask_for_more();

  ReadCommand base_command() const;
  ReadCommand range_command() const;
  ReadCommand partition_command(const PartitionTarget& target) const;
  void set_resume(ReadCommand& command) const;

  /// Until a large answer of this client may begin; the time of the request begins anew. Errors:
  /// kUnavailable, the client has gone; kStaleSchema, its rights may have changed; kReadTimeout.
  Task<Result<void>> await_turn();
  /// For `reads` reads at once, which then have their limits from limit(). Errors: kOverloaded,
  /// and those of await_turn().
  Task<Result<void>> take_room(size_t reads);
  void set_chunk_size();
  /// How many reads there is room for at once, `most` at most.
  size_t reads_at_once(size_t most);
  void limit(ReadCommand& command) const;
  /// What a read has shown of sizes. True: it was withheld, and is tried again with more room.
  bool learn_from(const ReadResult& chunk);
  /// For the next run of the statement.
  void remember_sizes() const;
  uint64_t bytes_held() const { return result_.cells.size() + sorted_bytes_ + kept_bytes_; }

  /// The store knows nothing of dropped columns: to it a row of their cells only is live.
  bool store_counts() const { return statement_.table_->dropped_columns.empty(); }

  /// count(*), or aggregates that fold, of one partition or of a range: the replicas do it.
  bool counts_in_place() const;
  /// False: the rows must be read after all.
  Task<Result<bool>> count_in_place();
  replication::ReadOptions read_options() const {
    return {.level = context_.options.consistency, .deadline = deadline_, .trace = context_.trace};
  }
  Task<Result<ReadResult>> read_one(ReadCommand command);
  Task<Result<std::vector<ReadResult>>> read_many(std::vector<ReadCommand> commands);

  /// Reads the next partitions of the list: one that is under way alone, others together.
  Task<Result<void>> run_partitions();

  /// Rows straight from the store to the page, if it can at once. Unset: as if nothing had been
  /// asked.
  std::optional<Result<ReadEnd>> read_here(ReadCommand& command);
  void step_partition(const ReadEnd& chunk);

  // --- rows ---

  void begin_partition(BytesView partition_key, bool has_rows);
  /// After begin_partition() and the reading of static cells.
  void note_static(const RowMaterializer& rows) {
    if (partition_is_new_) weight_read_ += storage::row_weight(rows.static_bytes());
  }
  /// A live row that is looked at, unless the next page reads it again.
  void note_row(const RowPlace& place);

  /// What rows are read and evaluated with: of one chunk.
  struct Evaluation {
    explicit Evaluation(SelectRun& run)
        : rows(run.statement_.layout_, arena, run.context_.now_s), context{run.evaluation_.bound,
                                                                           made,
                                                                           run.functions_,
                                                                           run.context_.now_s,
                                                                           &rows.row(),
                                                                           {}} {}
    /// Nothing that was made of a row is needed any more.
    void end_row() {
      if (made.allocated_bytes() != 0) made = base::Arena();
    }
    base::Arena arena;  // of the rows
    base::Arena made;   // by expressions, of one row
    RowMaterializer rows;
    EvalContext context;
  };
  /// Where the reading of a chunk stands.
  struct ChunkRows {
    ChunkRows(SelectRun& run, const ReadResult& rows) : chunk(rows), evaluation(run) {}
    void next_partition() {
      ++partition;
      row = 0;
      started = false;
    }
    const ReadResult& chunk;
    Evaluation evaluation;
    size_t partition = 0, row = 0;
    bool started = false;   // in that partition
    bool off_loop = false;  // the row that comes next is too long for the loop
  };
  /// The rows of a chunk, in several turns of the loop where they are much work.
  Task<Result<void>> take(const ReadResult* chunk);
  /// One turn; false: there is more.
  Result<bool> take_rows(ChunkRows& from);
  Result<void> check_time() const;
  /// What a row costs, estimated: to read it, to test it, and to make of it what is not charged by
  /// functions.
  uint64_t read_ns(uint64_t bytes) const { return (kRowNs + bytes) * row_factor_; }
  /// What it may cost with the functions.
  uint64_t row_ns_max(uint64_t bytes) const {
    return read_ns(bytes) + functions_ns_ + functions_ns_per_byte_ * bytes;
  }
  void estimate_rows();
  class Stream;

  /// count(*): nobody looks into the rows.
  Result<void> count(const ReadResult& chunk);
  Result<void> take_row(const RowPlace& place, EvalContext& evaluation);
  /// A row that the filters let through; `evaluation` has it as it is shown.
  Result<void> take_passed(const RowPlace& place, EvalContext& evaluation);
  /// The row as a client sees it that may not see what is masked; until the next call. Errors: of
  /// the masks' functions.
  Result<EvalContext> masked(const EvalContext& evaluation);
  /// What one answer may hold; more needs paging.
  static constexpr size_t kResultBytesMax = 64u << 20;
  /// A page ends early with the row that brings it here: the size of pages is in rows, which may be
  /// long. Far enough below kResultBytesMax for one row more.
  static constexpr size_t kPageEndBytes = 16u << 20;
  /// A row was written. False: there is room for another one, or there are no pages.
  bool ends_page() {
    if (page_left_ <= 0) return false;
    if (--page_left_ != 0 && result_.cells.size() < kPageEndBytes) return false;
    page_left_ = 0;
    return true;
  }
  /// For every cell: inline, the error is made elsewhere.
  static bool is_too_large(size_t bytes) { return bytes > kResultBytesMax; }
  static std::unexpected<Error> fail_too_large();
  static Result<void> check_size(size_t bytes) {
    if (is_too_large(bytes)) [[unlikely]]
      return fail_too_large();
    return {};
  }
  storage::ReadPosition position_of(const RowPlace& place) const {
    storage::ReadPosition position;
    set_position(position, place);
    return position;
  }
  void set_position(storage::ReadPosition& position, const RowPlace& place) const;
  Bytes encode_position(storage::ReadPosition after) const;
  /// Where there is a next page: its position has keys, which may be masked.
  void hide_position() {
    result_.hides_position = result_.next_position && statement_.masks_keys_ &&
                             !sees_unmasked(context_.client, *context_.schema, *statement_.table_);
  }

  /// The first columns of a clustering key; nothing of none.
  Result<BytesView> clustering_prefix(const RowPlace& place, size_t columns) const;
  /// The columns that ORDER BY names.
  Result<Bytes> sort_key(const RowPlace& place) const {
    TETRAD_TRY(const BytesView prefix, clustering_prefix(place, statement_.order_columns_));
    return Bytes(prefix);
  }

  // --- the nearest rows (nearest_rows.cc) ---

  Result<void> check_nearest_level() const;
  /// After rows_left_ and page_size_ are set.
  Result<void> bind_nearest(std::optional<int64_t> partition_limit);
  /// A row that has passed all tests: kept as long as it is among the nearest.
  Result<void> take_nearest(EvalContext& evaluation);
  /// Whether replicas are to name the nearest rows now.
  bool asks_for_names() const;
  /// Reads the rows that replicas name. False: they may lack nearer ones, so all rows must be read.
  Task<Result<bool>> read_nearest();
  Task<Result<void>> read_named(std::span<const replication::NearestNames::Row> names);
  /// Whether `nearest_max_` rows are kept that are no further than this.
  bool has_nearer_than(double distance) const;
  void forget_rows();

  // --- groups ---

  Result<void> take_grouped(const RowPlace& place, EvalContext& evaluation);

  /// What the rows of a group have in common inside their partition.
  struct GroupKey {
    Bytes columns;           // the first of the clustering key
    OptionalBytes function;  // of the next
    bool operator==(const GroupKey&) const = default;
  };
  /// Into `key`, whose memory is used again: there may be a group for each row.
  Result<void> make_group_key(const RowPlace& place, EvalContext& evaluation, GroupKey& key) const;

  /// After a page that ended with a group: rows written behind its last row since belong to no
  /// group of this page.
  Result<void> skip_last_group(const SelectPosition& from);
  /// Where the next page begins.
  storage::ReadPosition end_of_last_group();

  /// Columns that are not aggregated show the group's first row.
  void keep_first_row(const RowView& row);

  /// Writes the row of the open group.
  Result<void> end_groups();

  // --- writing ---

  /// The cells of a row of columns, appended at once. Errors: kInvalid, the answer is too large;
  /// nothing is taken for it then.
  Result<void> append_plain(const RowView& row);

  /// A row that finish() puts in its place.
  Result<void> write_for_sort(Bytes key, EvalContext& evaluation);
  Result<void> write(EvalContext& evaluation);
  /// The rows that were written for sorting; there are none left afterwards.
  void put_in_order();
  Result<StatementResult> finish();

  // --- what it cost (select_charge.cc) ---

  /// At the gate of the table's throughput, for the least that the page can cost.
  Task<Result<void>> admit();
  /// Of a range: how far the page has come.
  RingPosition range_end_read() const {
    return exhausted_ ? partitions_.range.end : last_position_;
  }
  /// From where the page began; at least the first.
  std::span<const partitioner::Tablet> tablets_to(const replication::TableInfo& table,
                                                  RingPosition end) const;
  /// The first partitions of the list, or a place in each tablet of the range as far as `end`.
  std::vector<RingPosition> places_read(uint64_t partitions, RingPosition end) const;
  /// The rest of what the page has cost, in even parts.
  void settle(uint64_t weight, uint64_t partitions) const;
  ReadWork work_done() const;
  /// How many physical partitions the page has touched beyond the first.
  uint64_t further_partitions(uint64_t partitions) const;
  /// Adds the page to the request's charge, and the warning of ALLOW FILTERING.
  void charge();
  /// A row of ORDER BY over several partitions, until all are there: what it is sorted by, and its
  /// answer.
  struct SortedRow {
    Bytes key, cells;
  };
  const SelectStatement& statement_;
  ExecuteContext& context_;
  base::Arena arena_;
  AnswerRoom room_;
  // Of the next read: where it stops, and what it may answer at most; 0: not known yet.
  uint64_t chunk_limit_ = 0, chunk_max_ = 0;
  uint64_t largest_chunk_ = 0;
  bool has_read_ = false;
  FunctionEnvironment functions_;
  const bool is_masked_;
  base::Arena mask_arena_;  // of masked_row_
  RowView masked_row_;
  EvalContext evaluation_;
  BoundPartitions partitions_;
  BoundClustering clustering_;
  std::vector<BoundFilter> filters_;
  std::optional<storage::IndexBounds> index_bounds_;
  int64_t index_rows_ = 0;
  bool filters_active_ = false;
  base::MonotonicUs began_us_ = context_.reactor.now_us();  // when the first read could have begun
  base::Deadline deadline_;
  bool nothing_ = false, exhausted_ = false, sorts_ = false;
  int64_t page_size_ = -1, partition_limit_ = -1;
  size_t next_partition_ = 0;
  size_t first_partition_ = 0;  // of this page
  RingPosition range_start_;    // of this page
  std::optional<storage::ReadPosition> after_;
  uint64_t admitted_weight_ = 0;
  bool last_chunk_partition_ = false, is_last_row_ = false;
  std::vector<std::unique_ptr<Aggregator>> aggregators_;
  std::vector<OptionalView> aggregated_;  // the arguments of one call
  uint64_t rows_counted_ = 0;
  bool group_open_ = false, group_skipped_ = false;
  Bytes group_partition_;
  Bytes group_sort_key_;
  GroupKey group_key_, next_group_key_;
  RowView first_row_;
  Bytes first_row_bytes_;  // what it shows
  std::vector<OptionalBytes> group_results_;
  storage::ReadPosition last_row_;
  int64_t groups_of_partition_ = 0, last_groups_ = 0;
  std::vector<SortedRow> sorted_;
  std::optional<storage::QueryVector> query_;
  BytesView query_bytes_;  // of the bound value
  size_t nearest_max_ = 0;
  uint64_t rows_measured_ = 0;
  bool has_asked_for_names_ = false;
  size_t sorted_bytes_ = 0;
  uint64_t kept_bytes_ = 0;  // of chunks that wait for others
  static constexpr uint64_t kRowNs = 150;
  uint64_t row_factor_ = 1, functions_ns_ = 0, functions_ns_per_byte_ = 0;
  RowsResult result_;
};

}  // namespace tetrad::cql
