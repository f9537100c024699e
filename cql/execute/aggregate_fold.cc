// SPDX-License-Identifier: Apache-2.0
// Aggregates that replicas compute beside their rows, so that count, min, max, sum and avg of a
// large table move no rows. aggregate_fold.h has the format of a spec; a state is what the
// aggregators save, one after another.
//
// make_aggregate_fold() writes a spec and reads it back, so both ends make the plan from the same
// bytes. The spec stands for itself: replicas know no CQL schema, so it carries the types and
// column ids it needs, and a plan has a table of its own made of them.
//
// Specs and states come from other nodes: each number is checked, and an error is kCorruption. A
// value that is too large to be folded is kInvalid; then the coordinator reads rows instead.
#include "cql/execute/aggregate_fold.h"

#include <algorithm>
#include <array>

#include "cql/execute/row_materializer.h"

namespace tetrad::cql {

namespace {

constexpr uint8_t kVersion = 1;
constexpr uint8_t kStaticOnlyRows = 1;
// In the place of a column's number: count(*).
constexpr uint8_t kNoColumn = 0xff;
constexpr int kTypeOptionVersion = 5;  // knows all native types
constexpr uint32_t kColumnIdMax = 65'535;
/// With larger values the rows are read: states stay below a mebibyte.
constexpr size_t kExtremeBytesMax = 4096;
/// Sums of such numbers lose no digit and pass no limit, in whatever order they are added.
constexpr size_t kNumberBytesSummedMax = 512;
constexpr int32_t kScaleSummedMax = 512;

/// On the wire: never renumber.
enum class Function : uint8_t { kCountRows, kCount, kMin, kMax, kSum, kAvg };
constexpr std::array<std::string_view, 6> kFunctionNames = {"count", "count", "min",
                                                            "max",   "sum",   "avg"};

Result<TypePtr> read_native_type(base::ByteReader& reader) {
  TETRAD_TRY(TypePtr type, read_type_option(reader));
  if (!type->is_native() || type->kind() == TypeKind::kEmpty)
    return fail(ErrorCode::kCorruption, "values of {} are not folded", type->cql_text());
  return type;
}

Result<ColumnKind> column_kind(uint8_t number) {
  if (number > static_cast<uint8_t>(ColumnKind::kRegular))
    return fail(ErrorCode::kCorruption, "no kind of column has the number {}", number);
  return static_cast<ColumnKind>(number);
}

/// One aggregate of a plan.
struct Call {
  AggregateFunctionPtr function;
  int32_t slot = -1;  // of its argument; none: count(*)
  /// Of the argument's value.
  size_t bytes_max = ~size_t{0};
  bool bounds_scale = false;
};

// Decimals of very different scales would make sums of unbounded length.
bool is_allowed(const Call& call, BytesView value) {
  if (value.size() > call.bytes_max) return false;
  if (!call.bounds_scale || value.size() < sizeof(int32_t)) return true;
  const auto scale = base::load_big_endian<int32_t>(value.data());
  return scale >= -kScaleSummedMax && scale <= kScaleSummedMax;
}

std::vector<std::unique_ptr<Aggregator>> make_aggregators(std::span<const Call> calls) {
  std::vector<std::unique_ptr<Aggregator>> aggregators;
  for (const Call& call : calls) aggregators.push_back(call.function->make_native());
  return aggregators;
}

Bytes save(std::span<const std::unique_ptr<Aggregator>> aggregators) {
  Bytes state;
  base::ByteWriter writer(state);
  for (const auto& aggregator : aggregators) aggregator->save(writer);
  return state;
}

/// What a spec says.
class AggregatePlan final : public storage::FoldPlan,
                            public std::enable_shared_from_this<AggregatePlan> {
 public:
  static Result<std::shared_ptr<const AggregatePlan>> read(BytesView spec) {
    auto plan = std::make_shared<AggregatePlan>();
    TETRAD_TRY_VOID(plan->take(spec));
    return plan;
  }

  BytesView spec() const override { return spec_; }
  bool in_order() const override { return in_order_; }
  Result<std::unique_ptr<storage::RowFold>> go_on(BytesView state, int64_t now_s) const override;
  // An empty state is one without rows. Order matters only where in_order() says so.
  Result<Bytes> join(std::span<const Bytes> states) const override {
    const auto aggregators = make_aggregators(calls_);
    for (const Bytes& state : states) {
      if (state.empty()) continue;
      base::ByteReader reader(state);
      for (const auto& aggregator : aggregators) TETRAD_TRY_VOID(aggregator->join(reader));
      if (!reader.at_end()) return fail(ErrorCode::kCorruption, "a state of too many bytes");
    }
    return save(aggregators);
  }

 private:
  friend class AggregateFold;

  Result<void> take(BytesView spec) {
    spec_ = Bytes(spec);
    base::ByteReader reader(spec_);
    TETRAD_TRY(const uint8_t version, reader.read_u8());
    if (version != kVersion)
      return fail(ErrorCode::kCorruption, "a fold of version {}, known is {}", version, kVersion);
    TETRAD_TRY(const uint8_t flags, reader.read_u8());
    if ((flags & ~kStaticOnlyRows) != 0)
      return fail(ErrorCode::kCorruption, "a fold with the flags {:#x}", flags);
    static_only_rows_ = (flags & kStaticOnlyRows) != 0;
    TETRAD_TRY(const std::vector<TypePtr> types, take_columns(reader));
    TETRAD_TRY_VOID(take_calls(reader, types));
    if (!reader.at_end())
      return fail(ErrorCode::kCorruption, "{} bytes after the fold", reader.remaining());
    return {};
  }

  /// Makes the layout of a table with the columns that are read; returns the types of its slots.
  Result<std::vector<TypePtr>> take_columns(base::ByteReader& reader) {
    std::vector<ColumnSchema> columns;
    TETRAD_TRY(const uint8_t partition_columns, reader.read_u8());
    for (uint32_t i = 0; i < partition_columns; ++i)
      // Types of the partition key do not matter for splitting it; those that are folded come with
      // their slots.
      columns.push_back({fmt::format("p{}", i), blob_type(), ColumnKind::kPartitionKey, i});
    TETRAD_TRY(const uint8_t clustering_columns, reader.read_u8());
    for (uint32_t i = 0; i < clustering_columns; ++i) {
      TETRAD_TRY(const uint8_t descending, reader.read_u8());
      TETRAD_TRY(TypePtr type, read_native_type(reader));
      columns.push_back(
          {fmt::format("c{}", i), std::move(type), ColumnKind::kClustering, i, descending != 0});
    }
    TETRAD_TRY(const uint8_t count, reader.read_u8());
    std::vector<TypePtr> types;
    std::vector<std::string> names;
    for (size_t i = 0; i < count; ++i) {
      TETRAD_TRY(const uint8_t kind_number, reader.read_u8());
      TETRAD_TRY(const ColumnKind kind, column_kind(kind_number));
      TETRAD_TRY(const uint32_t number, reader.read_u32());
      TETRAD_TRY(TypePtr type, read_native_type(reader));
      const bool in_key = kind == ColumnKind::kPartitionKey || kind == ColumnKind::kClustering;
      // `number` is a position in the key, or a column id.
      const uint32_t end = kind == ColumnKind::kPartitionKey ? partition_columns
                           : kind == ColumnKind::kClustering ? clustering_columns
                                                             : kColumnIdMax + 1;
      if (number >= end || (!in_key && number == storage::kKeyCellColumnId))
        return fail(ErrorCode::kCorruption, "there is no column {} to fold", number);
      std::string name = fmt::format("{}{}",
                                     kind == ColumnKind::kPartitionKey ? 'p'
                                     : in_key                          ? 'c'
                                                                       : 'v',
                                     number);
      if (std::ranges::find(names, name) != names.end())
        return fail(ErrorCode::kCorruption, "column {} twice in a fold", number);
      if (kind == ColumnKind::kClustering && *type != *columns[partition_columns + number].type)
        return fail(ErrorCode::kCorruption, "column {} of two types in a fold", number);
      if (!in_key) columns.push_back({name, type, kind, 0, false, false, number});
      names.push_back(std::move(name));
      types.push_back(std::move(type));
    }
    auto table = std::make_shared<TableSchema>();
    table->set_columns(std::move(columns));
    std::vector<const ColumnSchema*> slots;
    for (const std::string& name : names) slots.push_back(table->find(name));
    layout_ = RowLayout::make(std::move(table), std::move(slots), false);
    return types;
  }

  Result<void> take_calls(base::ByteReader& reader, const std::vector<TypePtr>& types) {
    TETRAD_TRY(const uint8_t count, reader.read_u8());
    for (size_t i = 0; i < count; ++i) {
      TETRAD_TRY(const uint8_t number, reader.read_u8());
      TETRAD_TRY(const uint8_t column, reader.read_u8());
      const auto function = static_cast<Function>(number);
      const bool counts_rows = function == Function::kCountRows;
      if (number >= kFunctionNames.size() || counts_rows != (column == kNoColumn) ||
          (!counts_rows && column >= types.size()))
        return fail(ErrorCode::kCorruption, "a fold with function {} of column {}", number, column);
      Call call;
      if (counts_rows) {
        call.function = count_rows_aggregate();
      } else {
        const DataType& type = *types[column];
        call.slot = column;
        call.function = find_aggregate(kFunctionNames[number], types[column]);
        if (call.function == nullptr)
          return fail(ErrorCode::kCorruption, "a fold with {} of {}", kFunctionNames[number],
                      type.cql_text());
        set_bounds(call, function, type);
      }
      // Sums of floats, for example, depend on the order of their rows; then tablets are folded one
      // after another.
      in_order_ = in_order_ || call.function->folding == Folding::kInOrder;
      calls_.push_back(std::move(call));
    }
    return {};
  }

  static void set_bounds(Call& call, Function function, const DataType& type) {
    if (function == Function::kMin || function == Function::kMax) call.bytes_max = kExtremeBytesMax;
    const bool is_long = type.kind() == TypeKind::kVarint || type.kind() == TypeKind::kDecimal;
    if ((function != Function::kSum && function != Function::kAvg) || !is_long) return;
    call.bytes_max = kNumberBytesSummedMax;
    call.bounds_scale = type.kind() == TypeKind::kDecimal;
  }

  Bytes spec_;
  RowLayout layout_;
  std::vector<Call> calls_;
  bool static_only_rows_ = false, in_order_ = false;
};

class AggregateFold final : public storage::RowFold {
 public:
  AggregateFold(std::shared_ptr<const AggregatePlan> plan, int64_t now_s)
      : plan_(std::move(plan)),
        rows_(plan_->layout_, arena_, now_s),
        aggregators_(make_aggregators(plan_->calls_)) {}

  Result<void> load(BytesView state) { return load_aggregates(aggregators_, state); }

  Result<void> begin_partition(RingPosition, BytesView partition_key,
                               const storage::RowRecord& header, bool rows_follow) override {
    partition_key_.assign(partition_key);  // views of it are in the row
    TETRAD_TRY_VOID(rows_.start_partition(partition_key_, &header));
    // A partition without rows counts once for its static columns.
    if (rows_follow || !plan_->static_only_rows_) return {};
    rows_.clear_row();
    return add_row();
  }
  Result<void> take_row(BytesView clustering_key, const storage::RowRecord& row) override {
    TETRAD_TRY_VOID(rows_.read_row(clustering_key, row));
    return add_row();
  }
  Result<Bytes> state() const override { return save(aggregators_); }

 private:
  Result<void> add_row() {
    for (size_t i = 0; i < aggregators_.size(); ++i) {
      const Call& call = plan_->calls_[i];
      if (call.slot < 0) {
        TETRAD_TRY_VOID(aggregators_[i]->add({}));
        continue;
      }
      const OptionalView& value = rows_.row().values[static_cast<size_t>(call.slot)];
      if (!value) continue;  // these aggregates leave nulls out
      if (!is_allowed(call, *value))
        return fail(ErrorCode::kInvalid, "a value of {} bytes is not folded", value->size());
      TETRAD_TRY_VOID(aggregators_[i]->add({&value, 1}));
    }
    return {};
  }

  const std::shared_ptr<const AggregatePlan> plan_;
  base::Arena arena_;
  RowMaterializer rows_;
  Bytes partition_key_;
  std::vector<std::unique_ptr<Aggregator>> aggregators_;
};

Result<std::unique_ptr<storage::RowFold>> AggregatePlan::go_on(BytesView state,
                                                               int64_t now_s) const {
  auto fold = std::make_unique<AggregateFold>(shared_from_this(), now_s);
  TETRAD_TRY_VOID(fold->load(state));
  return fold;
}

/// The aggregate's number on the wire; unset: it is not folded.
std::optional<Function> function_of(const AggregateCall& call) {
  if (call.function->folding == Folding::kNever) return std::nullopt;
  if (call.arguments.empty()) return Function::kCountRows;
  const auto first = kFunctionNames.begin() + 1;
  const auto found = std::find(first, kFunctionNames.end(), call.function->name);
  if (found == kFunctionNames.end()) return std::nullopt;
  return static_cast<Function>(found - kFunctionNames.begin());
}

}  // namespace

storage::FoldPlanPtr make_aggregate_fold(const TableSchema& table,
                                         std::span<const ColumnSchema* const> slots,
                                         std::span<const AggregateCall> calls,
                                         bool static_only_rows) {
  const auto clustering = table.clustering();
  size_t clustering_read = 0;
  for (const ColumnSchema* column : slots) {
    if (!column->type->is_native()) return nullptr;
    if (column->kind == ColumnKind::kClustering)
      clustering_read = std::max<size_t>(clustering_read, column->position + 1);
  }
  constexpr size_t kMax = kNoColumn;
  if (table.partition_key().size() > kMax || clustering_read > kMax || slots.size() > kMax ||
      calls.size() > kMax)
    return nullptr;
  Bytes spec;
  base::ByteWriter writer(spec);
  writer.u8(kVersion);
  writer.u8(static_only_rows ? kStaticOnlyRows : 0);
  writer.u8(static_cast<uint8_t>(table.partition_key().size()));
  writer.u8(static_cast<uint8_t>(clustering_read));
  for (const ColumnSchema& column : clustering.first(clustering_read)) {
    writer.u8(column.descending ? 1 : 0);
    write_type_option(writer, *column.type, kTypeOptionVersion);
  }
  writer.u8(static_cast<uint8_t>(slots.size()));
  for (const ColumnSchema* column : slots) {
    writer.u8(static_cast<uint8_t>(column->kind));
    writer.u32(column->is_primary_key() ? column->position : column->id);
    write_type_option(writer, *column->type, kTypeOptionVersion);
  }
  writer.u8(static_cast<uint8_t>(calls.size()));
  for (const AggregateCall& call : calls) {
    const auto function = function_of(call);
    if (!function || (!call.arguments.empty() && call.arguments.front()->slot() < 0))
      return nullptr;
    writer.u8(static_cast<uint8_t>(*function));
    writer.u8(call.arguments.empty() ? kNoColumn
                                     : static_cast<uint8_t>(call.arguments.front()->slot()));
  }
  auto plan = AggregatePlan::read(spec);
  if (!plan) return nullptr;  // a type that is not folded
  return std::move(*plan);
}

Result<storage::FoldPlanPtr> read_aggregate_fold(BytesView spec) {
  TETRAD_TRY(storage::FoldPlanPtr plan, AggregatePlan::read(spec));
  return plan;
}

Result<void> load_aggregates(std::span<const std::unique_ptr<Aggregator>> aggregators,
                             BytesView state) {
  if (state.empty()) return {};
  base::ByteReader reader(state);
  for (const auto& aggregator : aggregators) TETRAD_TRY_VOID(aggregator->load(reader));
  if (!reader.at_end()) return fail(ErrorCode::kCorruption, "a state of too many bytes");
  return {};
}

}  // namespace tetrad::cql
