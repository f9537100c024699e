// SPDX-License-Identifier: Apache-2.0
// EXPLAIN SELECT. The values are bound as the SELECT would bind them. Then
//   1. the physical partitions that it would ask are counted by the metadata;
//   2. a sample of the rows that it would look at is read at LOCAL_ONE: at most kSampleRows of the
//      first partition that is named, or as many from the start of the part of the ring and, where
//      that has more, from each of kSamplePlaces - 1 further places in it;
//   3. what was not read is estimated: as many rows in each other named partition, and in the rest of
//      the ring as in the parts that the sample has covered, since ring positions are hashes. A
//      partition that a read ended inside is left out, unless the read has no other: of such a
//      partition at least what was seen is there.
#include <algorithm>
#include <cmath>
#include <set>

#include "cql/execute/select_run.h"
#include "cql/prepare/prepared_explain.h"
#include "cql/types/value.h"

namespace tetrad::cql {

namespace {

constexpr uint32_t kSampleRows = 200;
/// The distance between two neighbours on the ring varies by as much as it is; the mean of 16 and
/// more by a quarter.
constexpr unsigned kSamplePlaces = 16;

/// The part of the ring between two positions, 0 to 1.
double part_of_ring(RingPosition start, RingPosition end) {
  return (static_cast<double>(end.token) - static_cast<double>(start.token)) / std::ldexp(1.0, 64);
}

/// Rows that are looked at, their weight (storage/row/row_weight.h), and the part of the ring that
/// has no others.
struct Sample {
  double rows = 0, weight = 0, part = 0;
};

}  // namespace

/// One execution of an EXPLAIN: a SELECT that is bound and not run.
class ExplainRun final : private SelectRun {
 public:
  ExplainRun(const SelectStatement& statement, ExecuteContext& context,
             std::span<const BoundValue> values)
      : SelectRun(statement, context, values), level_(context.options.consistency) {}

  Task<Result<StatementResult>> explain(ResultMetadataPtr metadata) {
    context_.options.paging_position.reset();
    if (statement_.where_.change_feed() != nullptr)
      co_return fail(ErrorCode::kInvalid, "EXPLAIN of a change feed is not supported");
    TETRAD_CO_TRY(const bool is_bound, bind_on_loop());
    if (!is_bound) {
      auto bound = co_await bind_off_loop();
      TETRAD_CO_TRY_VOID(std::move(bound));
    }
    count_partitions();
    if (!nothing_) {
      auto estimated = co_await estimate();
      TETRAD_CO_TRY_VOID(std::move(estimated));
    }
    RowsResult result;
    result.metadata = std::move(metadata);
    result.row_count = 1;
    append_row(result.cells);
    context_.charge.add_read({}, ConsistencyLevel::kLocalOne);
    co_return StatementResult(std::move(result));
  }

 private:
  /// The physical partitions that hold what is asked for.
  void count_partitions() {
    if (statement_.table_->is_virtual || nothing_) return;
    const replication::MetaSnapshot state = context_.meta.snapshot();
    const replication::TableInfo* table = state->table(statement_.table_->incarnation);
    if (table == nullptr) return;
    if (partitions_.is_range) {
      for (const auto& tablet : table->tablets.tablets()) {
        const RingRange& all = partitions_.range;
        asked_ += std::max(all.start, tablet.range.start) < std::min(all.end, tablet.range.end);
      }
      return;
    }
    std::set<TabletId> tablets;
    for (const PartitionTarget& target : partitions_.partitions)
      tablets.insert(table->tablets.find(target.position).id);
    asked_ = tablets.size();
  }

  Task<Result<void>> estimate() {
    context_.options.consistency = ConsistencyLevel::kLocalOne;
    if (!partitions_.is_range) {
      auto looked = co_await look_at(partition_command(partitions_.partitions.front()));
      TETRAD_CO_TRY_VOID(std::move(looked));
      extrapolate(static_cast<double>(partitions_.partitions.size()));
      co_return Result<void>();
    }
    const RingRange all = partitions_.range;
    const auto first = static_cast<uint64_t>(all.start.token);
    const uint64_t step = (static_cast<uint64_t>(all.end.token) - first) / kSamplePlaces;
    for (unsigned i = 0; i < kSamplePlaces; ++i) {
      ReadCommand command = range_command();
      if (i > 0) command.range.start = {static_cast<int64_t>(first + i * step), 0};
      if (i > 0 && command.range.start <= seen_up_to_) continue;
      auto looked = co_await look_at(std::move(command));
      TETRAD_CO_TRY_VOID(std::move(looked));
    }
    const double whole = part_of_ring(all.start, all.end);
    extrapolate(sample_.part > 0 ? std::max(whole / sample_.part, 1.0) : 1);
    co_return Result<void>();
  }

  /// Adds a read of kSampleRows at most to the sample.
  Task<Result<void>> look_at(ReadCommand command) {
    command.row_limit = std::min(command.row_limit, kSampleRows);
    while (true) {
      auto read = co_await read_one(command);
      if (!read) co_return std::unexpected(std::move(read).error());
      if (learn_from(*read)) continue;  // withheld: once more with more room
      co_return add_to_sample(*read, command.range);
    }
  }

  Result<void> add_to_sample(const ReadResult& read, const RingRange& range) {
    std::span<const storage::PartitionData> partitions = read.partitions;
    seen_up_to_ = read.exhausted ? range.end : read.complete_up_to.position;
    if (!read.exhausted && partitions_.is_range && read.complete_up_to.clustering_key &&
        partitions.size() > 1) {
      partitions = partitions.first(partitions.size() - 1);
      seen_up_to_ = partitions.back().position;
    }
    sample_.part += part_of_ring(range.start, seen_up_to_);
    // Weighed as take_rows() weighs what a page has read.
    base::Arena arena;
    RowMaterializer rows(statement_.layout_, arena, context_.now_s);
    for (const storage::PartitionData& partition : partitions) {
      TETRAD_TRY_VOID(rows.start_partition(partition));
      add(rows.static_bytes());
      bool has_rows = false;
      for (const storage::RowData& row : partition.rows) {
        TETRAD_TRY(const bool is_live, rows.read_row(row));
        if (!is_live) continue;
        has_rows = true;
        sample_.rows += 1;
        add(rows.row_bytes());
      }
      // As take_rows() shows static columns that stand alone.
      if (!has_rows && statement_.static_only_rows_ && rows.has_live_static()) sample_.rows += 1;
    }
    return {};
  }
  void add(uint64_t bytes) { sample_.weight += static_cast<double>(storage::row_weight(bytes)); }

  /// What is there is `times` the sample.
  void extrapolate(double times) {
    const double most = filters_active_ || statement_.is_aggregate_ || rows_left_ < 0
                            ? INFINITY
                            : static_cast<double>(rows_left_);
    const double weight_of_row = sample_.rows == 0 ? 0 : sample_.weight / sample_.rows;
    rows_ = std::min(sample_.rows * times, most);
    ReadWork work;
    work.partitions = partitions_.is_range ? 1 : partitions_.partitions.size();
    work.weight = static_cast<uint64_t>(std::min(rows_ * weight_of_row, 1e18));
    work.further_partitions = asked_ == 0 ? 0 : asked_ - 1;
    RequestCharge charge;
    charge.add_read(work, level_);
    units_ = charge.units();
  }

  bool asks_for_names_at_first() const { return statement_.nearest_ && asks_for_names(); }

  std::string access() const {
    if (statement_.table_->is_virtual) return "computed";
    if (asks_for_names_at_first()) return "nearest";
    return std::string(access_name(statement_.where_.access()));
  }

  /// Null: none.
  const IndexSchema* used_index() const {
    return asks_for_names_at_first() ? statement_.nearest_->index : statement_.where_.used_index();
  }

  void append_row(Bytes& out) const {
    const IndexSchema* const index = used_index();
    append_cell(out, access());
    if (index == nullptr)
      append_null_cell(out);
    else
      append_cell(out, index->name);
    append_cell(out, make_boolean(statement_.where_.leaves_out_rows_beside_index()));
    append_cell(out, make_bigint(static_cast<int64_t>(asked_)));
    append_cell(out, make_bigint(std::llround(std::min(rows_, 9e18))));
    append_cell(out, make_double(units_));
  }

  const ConsistencyLevel level_;
  uint64_t asked_ = 0;  // physical partitions
  Sample sample_;
  RingPosition seen_up_to_;  // by the last read of a range
  double rows_ = 0, units_ = 0;
};

ExplainStatement::ExplainStatement(std::shared_ptr<const SelectStatement> select)
    : select_(std::move(select)) {
  bind_variables_ = select_->bind_variables();
  partition_key_indexes_ = select_->partition_key_indexes();
  std::vector<ColumnSpec> columns;
  for (const auto& [name, type] : std::initializer_list<std::pair<const char*, TypePtr>>{
           {"access", text_type()},
           {"index", text_type()},
           {"filters", boolean_type()},
           {"physical_partitions", bigint_type()},
           {"estimated_rows", bigint_type()},
           {"estimated_request_units", double_type()}})
    columns.push_back({"system_tetrad", "explain", name, type});
  result_metadata_ = std::make_shared<const ResultMetadata>(std::move(columns));
}

Task<Result<StatementResult>> ExplainStatement::execute(ExecuteContext& context,
                                                        std::span<const BoundValue> values) const {
  ExplainRun run(*select_, context, values);
  auto result = co_await run.explain(result_metadata_);
  co_return result;
}

StatementPtr make_explain(std::shared_ptr<const SelectStatement> select) {
  return std::make_shared<ExplainStatement>(std::move(select));
}

}  // namespace tetrad::cql
