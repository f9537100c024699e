// SPDX-License-Identifier: Apache-2.0
// The rows of a SELECT on their way out: groups and aggregates, cells, sorted rows.
//
// Groups: rows of a group follow each other, so one group is open at a time. take_grouped() ends it
// when a row with another key comes; its first row is kept for columns that are selected beside
// aggregates. A page ends before the first row of a group that has no more room, never inside a
// group; the next page begins after the last row of the last group, and skips rows that were
// written into that group meanwhile (skip_last_group).
//
// LIMIT, PER PARTITION LIMIT and page size count groups, not rows, where there is GROUP BY.
#include <algorithm>
#include <utility>

#include "base/byte_io.h"
#include "cql/execute/select_run.h"
#include "cql/types/json.h"

namespace tetrad::cql {

namespace {

// Bytes that expressions of one row may leave in its arena before it is emptied.
constexpr size_t kMadeBytesKept = 64u << 10;

}  // namespace

Result<void> SelectRun::take_grouped(const RowPlace& place, EvalContext& evaluation) {
  if (statement_.is_grouped_) {
    const bool new_partition = !group_open_ || group_partition_ != place.partition_key;
    TETRAD_TRY_VOID(make_group_key(place, evaluation, next_group_key_));
    if (new_partition || next_group_key_ != group_key_) {
      TETRAD_TRY_VOID(end_groups());
      if (new_partition) groups_of_partition_ = 0;
      group_partition_.assign(place.partition_key);
      std::swap(group_key_, next_group_key_);
      group_open_ = true;
      group_skipped_ = partition_limit_ >= 0 && groups_of_partition_ >= partition_limit_;
      if (!group_skipped_ && (rows_left_ == 0 || page_left_ == 0)) {
        // This group belongs to the next page: it begins after the last row of the one before.
        done_ = true;
        group_open_ = false;
        // The next page reads this row again and is charged for it.
        --rows_read_;
        weight_read_ -= storage::row_weight(place.bytes);
        if (rows_left_ != 0) {
          partition_rows_done_ = last_groups_;
          result_.next_position = encode_position(end_of_last_group());
        }
        return {};
      }
      if (!group_skipped_) {
        ++groups_of_partition_;
        keep_first_row(*evaluation.row);
        if (sorts_) {
          TETRAD_TRY(group_sort_key_, sort_key(place));
        }
      }
    }
    // For each row: the page may end before the next one.
    set_position(last_row_, place);
    last_groups_ = groups_of_partition_;
    if (group_skipped_) return {};
    // Aggregates without GROUP BY: one group of all rows.
  } else if (!group_open_) {
    group_open_ = true;
    keep_first_row(*evaluation.row);
  }
  for (size_t i = 0; i < aggregators_.size(); ++i) {
    aggregated_.clear();
    for (const ExpressionPtr& argument : statement_.aggregates_[i].arguments) {
      TETRAD_TRY(const BoundValue value, argument->evaluate(evaluation));
      aggregated_.push_back(optional_view(value));
    }
    TETRAD_TRY_VOID(aggregators_[i]->add(aggregated_));
  }
  return {};
}

// The bytes of the first group_columns_ clustering columns are the key, with the function's value
// where GROUP BY ends with one.
Result<void> SelectRun::make_group_key(const RowPlace& place, EvalContext& evaluation,
                                       GroupKey& key) const {
  const Bytes& open = group_key_.columns;  // no other group's begins so
  if (group_open_ && !open.empty() && place.clustering_key != nullptr &&
      place.clustering_key->starts_with(open)) {
    key.columns = open;
  } else {
    TETRAD_TRY(const BytesView columns, clustering_prefix(place, statement_.group_columns_));
    key.columns.assign(columns);
  }
  key.function.reset();
  if (statement_.group_function_) {
    TETRAD_TRY(const BoundValue value, statement_.group_function_->evaluate(evaluation));
    if (value.has_bytes()) key.function.emplace(value.bytes);
  }
  return {};
}

Result<void> SelectRun::skip_last_group(const SelectPosition& from) {
  if (!statement_.is_grouped_ || !from.after.clustering_key) return {};
  const BytesView last = *from.after.clustering_key;
  Evaluation evaluation(*this);
  TETRAD_TRY_VOID(evaluation.rows.read_row(last, {}));
  const RowPlace place{from.after.position, from.after.partition_key, &last};
  if (is_masked_ && statement_.group_function_) {
    TETRAD_TRY(EvalContext shown, masked(evaluation.context));
    TETRAD_TRY_VOID(make_group_key(place, shown, group_key_));
  } else {
    TETRAD_TRY_VOID(make_group_key(place, evaluation.context, group_key_));
  }
  group_partition_ = from.after.partition_key;
  groups_of_partition_ = from.partition_rows_done;
  group_open_ = group_skipped_ = true;
  return {};
}

storage::ReadPosition SelectRun::end_of_last_group() {
  const bool is_of_partitions = statement_.group_columns_ == 0 && !statement_.group_function_;
  if (is_of_partitions || (partition_limit_ >= 0 && last_groups_ >= partition_limit_))
    last_row_.clustering_key.reset();  // no other group of that partition is wanted
  return std::move(last_row_);
}

// A copy: the chunk of the row goes before the group ends. One buffer holds all bytes and is used
// again for each group.
void SelectRun::keep_first_row(const RowView& row) {
  size_t bytes = 0;
  for (const OptionalView& value : row.values) bytes += value ? value->size() : 0;
  for (const auto& elements : row.elements)
    for (const auto& element : elements) bytes += element.key.size();
  first_row_bytes_.clear();
  first_row_bytes_.reserve(bytes);  // it stays where it is from here on
  const auto kept = [this](BytesView view) {
    const size_t at = first_row_bytes_.size();
    first_row_bytes_.append(view);
    return BytesView(first_row_bytes_).substr(at);
  };
  first_row_.values.clear();
  for (const OptionalView& value : row.values) {
    first_row_.values.push_back(value ? OptionalView(kept(*value)) : std::nullopt);
  }
  first_row_.times = row.times;
  first_row_.elements = row.elements;
  for (auto& elements : first_row_.elements) {
    for (auto& element : elements) element.key = kept(element.key);
  }
}

Result<void> SelectRun::end_groups() {
  // As in SQL and Cassandra: aggregates of no rows are one row (count 0, others null).
  const bool one_row_anyway = !statement_.is_grouped_ && !group_open_;
  if (statement_.is_grouped_ && (!group_open_ || group_skipped_)) {
    group_open_ = false;
    group_skipped_ = false;
    return {};
  }
  if (one_row_anyway) {
    first_row_.values.assign(statement_.layout_.slots.size(), std::nullopt);
    first_row_.times.assign(statement_.layout_.slots.size(), {});
    first_row_.elements.assign(statement_.layout_.slots.size(), {});
  }
  std::vector<OptionalBytes>& results = group_results_;
  results.clear();
  if (statement_.counts_only_ && store_counts()) {
    results.emplace_back(make_bigint(static_cast<int64_t>(rows_counted_)));
  } else {
    for (auto& aggregator : aggregators_) {
      TETRAD_TRY(OptionalBytes value, aggregator->finish());
      results.push_back(std::move(value));
    }
  }
  base::Arena arena;
  EvalContext evaluation{evaluation_.bound, arena,       functions_,
                         context_.now_s,    &first_row_, results};
  group_open_ = false;
  if (sorts_ && statement_.is_grouped_)
    return write_for_sort(std::move(group_sort_key_), evaluation);
  TETRAD_TRY_VOID(write(evaluation));
  if (rows_left_ > 0) --rows_left_;
  ends_page();  // seen by the group that comes next
  return check_size(result_.cells.size());
}

// Most SELECTs: the cells ([int] length, bytes; -1 for null) are copied with one growth of the
// buffer for the row.
Result<void> SelectRun::append_plain(const RowView& row) {
  Bytes& cells = result_.cells;
  size_t bytes = 0;
  for (const int32_t slot : statement_.plain_slots_) {
    const OptionalView& value = row.values[static_cast<size_t>(slot)];
    bytes += sizeof(int32_t) + (value ? value->size() : 0);
  }
  const size_t start = cells.size();
  if (is_too_large(start + bytes)) return fail_too_large();
  if (start + bytes > cells.capacity())
    // Growth by four: large pages would be copied too often by doubling, and no answer is larger
    // than kResultBytesMax.
    cells.reserve(std::max(start + bytes, std::min(4 * start, kResultBytesMax)));
  cells.resize_and_overwrite(start + bytes, [&](char* all, size_t size) {
    char* to = all + start;
    for (const int32_t slot : statement_.plain_slots_) {
      const OptionalView& value = row.values[static_cast<size_t>(slot)];
      base::store_big_endian(to, value ? static_cast<int32_t>(value->size()) : int32_t{-1});
      to += sizeof(int32_t);
      if (!value || value->empty()) continue;
      std::memcpy(to, value->data(), value->size());
      to += value->size();
    }
    return size;
  });
  return {};
}

// write() appends to result_.cells, so that is swapped out for the row's own cells. Rows count when
// they are put in order.
Result<void> SelectRun::write_for_sort(Bytes key, EvalContext& evaluation) {
  Bytes cells;
  std::swap(cells, result_.cells);
  TETRAD_TRY_VOID(write(evaluation));
  std::swap(cells, result_.cells);
  sorted_bytes_ += cells.size() + key.size();
  sorted_.push_back({std::move(key), std::move(cells)});
  --result_.row_count;
  return check_size(sorted_bytes_);
}

/// `evaluation`'s arena has nothing that is needed afterwards.
Result<void> SelectRun::write(EvalContext& evaluation) {
  Bytes& cells = result_.cells;
  ++result_.row_count;
  if (!statement_.plain_slots_.empty()) return append_plain(*evaluation.row);
  const size_t bytes_at_start = cells.size();
  std::string json;
  if (statement_.is_json_) json = "{";
  for (size_t i = 0; i < statement_.outputs_.size(); ++i) {
    TETRAD_TRY(const BoundValue value, statement_.outputs_[i]->evaluate(evaluation));
    if (statement_.is_json_) {
      if (i != 0) json += ", ";
      append_json_string(json, statement_.json_names_[i]);
      json += ": ";
      json += to_json(*statement_.outputs_[i]->type(), optional_view(value));
    } else if (value.has_bytes()) {
      if (is_too_large(cells.size() + value.bytes.size())) return fail_too_large();
      append_cell(cells, value.bytes);
    } else {
      append_null_cell(cells);
    }
    if (is_too_large(cells.size() + json.size())) return fail_too_large();
    // What made the value is not needed any more: a row may have thousands.
    // append_cell() has copied the value.
    if (evaluation.arena.allocated_bytes() > kMadeBytesKept) evaluation.arena = base::Arena();
  }
  if (statement_.is_json_) {
    json += "}";
    append_cell(cells, json);
  }
  context_.work.charge(cells.size() - bytes_at_start);
  return {};
}

// The sort is stable: rows with equal keys keep the order of the IN list. LIMIT counts after
// sorting.
void SelectRun::put_in_order() {
  const bool reversed = statement_.reversed_;
  std::ranges::stable_sort(sorted_, [reversed](const SortedRow& a, const SortedRow& b) {
    return reversed ? b.key < a.key : a.key < b.key;
  });
  for (const SortedRow& row : sorted_) {
    if (rows_left_ == 0) break;
    if (rows_left_ > 0) --rows_left_;
    result_.cells += row.cells;
    ++result_.row_count;
  }
  sorted_.clear();
}

Result<StatementResult> SelectRun::finish() {
  result_.metadata = statement_.result_metadata_;
  if (nothing_ && statement_.is_aggregate_ && !statement_.is_grouped_) {
    TETRAD_TRY_VOID(end_groups());
  }
  put_in_order();
  charge();
  hide_position();
  return std::move(result_);
}

}  // namespace tetrad::cql
