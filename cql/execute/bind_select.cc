// SPDX-License-Identifier: Apache-2.0
// SELECT before it reads: its values, limits and guardrails, and where a page begins.
//
// bind() does everything that may fail by values, before any read: levels, limits, filters, index,
// keys, guardrails; then it takes over a paging state. The order is Cassandra's, since it decides
// which error is reported. A paging state is client input: it may be of another statement, so it is
// checked against the partitions of this one.
#include <algorithm>

#include "cql/execute/select_run.h"
#include "cql/protocol/paging_state.h"
#include "replication/consistency.h"

namespace tetrad::cql {

// Unset: no limit, as in Cassandra.
Result<std::optional<int64_t>> SelectRun::limit_value(const ExpressionPtr& expression) {
  if (!expression) return std::nullopt;
  TETRAD_TRY(const BoundValue value, expression->evaluate(evaluation_));
  if (value.is_unset()) return std::nullopt;
  const auto limit = value.has_bytes() ? read_int(value.bytes) : std::nullopt;
  if (!limit) return fail(ErrorCode::kInvalid, "Invalid null value of limit");
  if (*limit <= 0) return fail(ErrorCode::kInvalid, "LIMIT must be strictly positive");
  return *limit;
}

bool SelectRun::reads_serially() const {
  return context_.options.consistency == ConsistencyLevel::kSerial ||
         context_.options.consistency == ConsistencyLevel::kLocalSerial;
}

/// As Cassandra: a scan is read at a quorum then, and of several partitions only pages.
Result<void> SelectRun::check_serial_level(std::optional<int64_t> limit) {
  if (!reads_serially() || nothing_) return {};
  ConsistencyLevel& level = context_.options.consistency;
  if (partitions_.is_range || statement_.table_->is_virtual) {
    level = level == ConsistencyLevel::kSerial ? ConsistencyLevel::kQuorum
                                               : ConsistencyLevel::kLocalQuorum;
    return {};
  }
  const int32_t page_size = context_.options.page_size;
  const bool fits_a_page = page_size <= 0 || (limit && *limit <= page_size);
  if (partitions_.partitions.size() > 1 && fits_a_page && !statement_.is_aggregate_ &&
      !statement_.is_grouped_) {
    return fail(ErrorCode::kInvalid,
                "SERIAL/LOCAL_SERIAL consistency may only be requested for one partition at a "
                "time");
  }
  return {};
}

Result<void> SelectRun::bind() {
  const SelectStatement& s = statement_;
  TETRAD_TRY_VOID(replication::check_read_level(context_.options.consistency));
  TETRAD_TRY_VOID(check_consistency(context_.settings.guardrails.read_consistency_levels,
                                    context_.options.consistency, false, context_.warnings));
  TETRAD_TRY(const auto limit, limit_value(s.limit_));
  TETRAD_TRY(const auto partition_limit, limit_value(s.per_partition_limit_));
  rows_left_ = limit.value_or(-1);
  partition_limit_ = s.distinct_ ? 1 : partition_limit.value_or(-1);
  page_size_ = context_.options.page_size > 0 ? context_.options.page_size : -1;
  // Its one row needs all rows of the table, in one page.
  if (s.is_aggregate_ && !s.is_grouped_) {
    page_size_ = -1;
    rows_left_ = -1;  // there is one row
  }
  TETRAD_TRY_VOID(check_nearest_level());
  for (const SelectedKey& key : s.selected_keys_) TETRAD_TRY_VOID(key.check(evaluation_));
  if (s.group_error_) return std::unexpected(*s.group_error_);
  TETRAD_TRY_VOID(bind_where());
  TETRAD_TRY_VOID(bind_nearest(partition_limit));
  TETRAD_TRY_VOID(check_counts());
  filters_active_ = !filters_.empty();
  nothing_ = clustering_.nothing || (partitions_.is_range && partitions_.range.empty()) ||
             (!partitions_.is_range && partitions_.partitions.empty());
  if (!clustering_.nothing) TETRAD_TRY_VOID(partitions_.check_keys());
  if (s.is_aggregate_) warn_of_aggregate();
  if (s.order_columns_ != 0 && s.where_.has_partition_key_in()) TETRAD_TRY_VOID(begin_sorting());
  TETRAD_TRY_VOID(check_serial_level(limit));
  for (const AggregateCall& call : s.aggregates_) {
    aggregators_.push_back(call.function->make(functions_));
  }
  if (context_.options.paging_position) TETRAD_TRY_VOID(resume_page());
  // Behind the checks, which Cassandra makes whatever is looked for. The bounds would be the whole index.
  if (std::ranges::any_of(filters_, &BoundFilter::is_barren)) nothing_ = true;
  page_left_ = page_size_;
  first_partition_ = next_partition_;
  range_start_ = after_ ? after_->position : partitions_.range.start;
  return {};
}

// Of several wrong values Cassandra reports the first in this order: filters, then the clustering
// key of a scan, the partition key, the clustering key.
Result<void> SelectRun::bind_where() {
  const SelectStatement& s = statement_;
  const uint32_t product_max = context_.settings.in_cartesian_product_max;
  TETRAD_TRY(filters_, s.where_.bind_filters(evaluation_));
  TETRAD_TRY(index_bounds_, s.where_.bind_index(filters_));
  const bool is_scan = !s.where_.has_partitions();
  if (is_scan) {
    TETRAD_TRY(clustering_, s.where_.bind_clustering(evaluation_, product_max));
  }
  // Where nothing can match it does not look at the rest.
  if (is_scan && clustering_.nothing && s.layout_.static_slots.empty()) {
    partitions_.is_range = true;
  } else {
    TETRAD_TRY(partitions_, s.where_.bind_partitions(evaluation_, product_max));
  }
  if (!is_scan && !partitions_.partitions.empty()) {
    TETRAD_TRY(clustering_, s.where_.bind_clustering(evaluation_, product_max));
  }
  return {};
}

// The texts are Cassandra's, which warns since such a query may read the whole table.
void SelectRun::warn_of_aggregate() {
  const Restrictions& where = statement_.where_;
  if (!where.has_partition_key()) {
    context_.warnings.push_back("Aggregation query used without partition key");
  } else if (where.has_partition_key_in() && !where.on_token()) {
    context_.warnings.push_back(
        "Aggregation query used on multiple partition keys (IN restriction)");
  }
}

// ORDER BY over an IN on the partition key: the rows of all partitions are kept until the last one
// has been read, so there can be one page only.
Result<void> SelectRun::begin_sorting() {
  sorts_ = true;
  if (context_.options.page_size > 0 && (statement_.is_aggregate_ || !nothing_)) {
    return fail(ErrorCode::kInvalid,
                "Cannot page queries with both ORDER BY and a IN restriction on the partition "
                "key; you must either remove the ORDER BY or the IN and sort client side, or "
                "disable paging for this query");
  }
  // No partition can give more than the whole may have.
  if (rows_left_ >= 0) {
    partition_limit_ = partition_limit_ < 0 ? rows_left_ : std::min(partition_limit_, rows_left_);
  }
  return {};
}

// The state of the last page: where it ended, and what LIMIT and PER PARTITION LIMIT have left.
Result<void> SelectRun::resume_page() {
  TETRAD_TRY(const SelectPosition from, decode_select_position(*context_.options.paging_position));
  // It may come from a page of another statement of the table.
  if (partitions_.is_range && !partitions_.range.contains(from.after.position))
    return fail(ErrorCode::kProtocol, kUnfitPagingState);
  after_ = from.after;
  // The smaller one: a state cannot widen the limit.
  if (rows_left_ >= 0 && from.rows_left >= 0) rows_left_ = std::min(rows_left_, from.rows_left);
  partition_rows_done_ = from.partition_rows_done;
  current_partition_ = from.after.partition_key;
  if (from.after.clustering_key) partition_with_rows_ = from.after.partition_key;
  if (!skip_last_group(from))  // the table is another one by now
    return fail(ErrorCode::kProtocol, kUnfitPagingState);
  if (!partitions_.is_range) skip_done_partitions();
  if (rows_left_ == 0) nothing_ = true;
  return {};
}

Result<void> SelectRun::check_counts() {
  const Guardrails& guardrails = context_.settings.guardrails;
  const std::string& table = statement_.table_->name;
  if (context_.options.page_size > 0) {
    const auto rows = static_cast<uint64_t>(context_.options.page_size);
    TETRAD_TRY_VOID(check_threshold(
        guardrails.page_size, rows, "page_size", context_.warnings,
        [&](uint64_t limit, bool fails) {
          return fails ? fmt::format(
                             "Aborting query for table {}, page size {} exceeds fail "
                             "threshold of {}.",
                             table, rows, limit)
                       : fmt::format(
                             "Query for table {} with page size {} exceeds warning "
                             "threshold of {}.",
                             table, rows, limit);
        }));
  }
  if (statement_.where_.has_partition_key_in()) {
    const uint64_t keys = partitions_.partitions.size();
    TETRAD_TRY_VOID(check_threshold(
        guardrails.partition_keys_in_select, keys, "partition_keys_in_select", context_.warnings,
        [&](uint64_t limit, bool fails) {
          return fails ? fmt::format(
                             "Aborting query with partition keys in IN clause on table "
                             "{}, number of partition keys {} exceeds fail threshold of "
                             "{}.",
                             table, keys, limit)
                       : fmt::format(
                             "Query with partition keys in IN clause on table {}, with "
                             "number of partition keys {} exceeds warning threshold of "
                             "{}.",
                             table, keys, limit);
        }));
    TETRAD_TRY_VOID(check_product(keys, "partition key"));
  }
  return check_product(clustering_.exact ? clustering_.rows.size() : clustering_.ranges.size(),
                       "clustering key");
}

Result<void> SelectRun::check_product(uint64_t product, std::string_view key) {
  return check_threshold(
      context_.settings.guardrails.in_select_cartesian_product, product,
      "in_select_cartesian_product", context_.warnings, [&](uint64_t limit, bool fails) {
        return fails ? fmt::format(
                           "Aborting query because the cartesian product of the IN "
                           "restrictions on {} produces {} values, this exceeds fail "
                           "threshold of {}.",
                           key, product, limit)
                     : fmt::format(
                           "The cartesian product of the IN restrictions on {} produces "
                           "{} values, this exceeds warning threshold of {}.",
                           key, product, limit);
      });
}

// Without a clustering key the position is behind all of its partition.
void SelectRun::skip_done_partitions() {
  const auto& all = partitions_.partitions;
  const auto found = std::ranges::find(all, after_->partition_key, &PartitionTarget::key);
  next_partition_ = static_cast<size_t>(found - all.begin());
  if (found != all.end() && !after_->clustering_key) {
    ++next_partition_;
    after_.reset();
  }
  if (next_partition_ == all.size()) nothing_ = true;
}

}  // namespace tetrad::cql
