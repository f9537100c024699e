// SPDX-License-Identifier: Apache-2.0
// INSERT, UPDATE, DELETE and BATCH once their meaning is known. Made by prepare_modify.cc, run by
// execute/execute_modify.cc and execute/execute_batch.cc. Members of ModifyStatement stand where
// their step does, all in execute/: keys in bind_modify.cc, reads that come first in read_lists.cc,
// mutations in make_mutations.cc, counters in execute_counter.cc.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "cql/prepare/conditions.h"
#include "cql/prepare/prepared_statement.h"
#include "cql/prepare/restrictions.h"
#include "replication/counters/counter_messages.h"
#include "storage/row/mutation.h"

namespace tetrad::cql {

/// An index that takes values up to a size only.
struct IndexLimit {
  IndexTarget target = IndexTarget::kSimple;
  size_t bytes_max = 0;
  std::string title;                // as an error names it
  std::optional<IndexTerms> words;  // of an index of words
};

/// What is done to one column, or to a part of it.
struct ColumnOperation {
  /// What an assignment does to its column.
  enum class Kind : uint8_t {
    kSet,            // a column of one cell
    kSetWhole,       // a collection or user type of many cells is replaced
    kAdd,            // elements are added to a set or map, appended to a list
    kPrepend,        // to a list
    kAddToValue,     // a number is added to a number, a text put behind a text; reads first
    kRemoveKeys,     // of a set or map: `value` is a set
    kDiscard,        // every element of a list that equals one of `value`; reads first
    kSetElement,     // map[key] = value
    kSetIndex,       // list[key] = value; reads first
    kRemoveElement,  // map[key], set[key]
    kRemoveIndex,    // list[key]; reads first
    kSetField,       // column.field = value
    kRemoveField,
    kRemove,     // the whole column
    kIncrement,  // a counter
    kDecrement,
  };
  Kind kind = Kind::kSet;
  const ColumnSchema* column = nullptr;
  ExpressionPtr key, value;
  size_t field = 0;
  std::vector<IndexLimit> index_limits;
  std::optional<storage::Similarity>
      vector_index;         // of an index that takes only what has a distance
  std::string key_of_view;  // the view whose key column it is: of what a key may be; "": none

  bool needs_read() const {
    return kind == Kind::kDiscard || kind == Kind::kSetIndex || kind == Kind::kRemoveIndex ||
           kind == Kind::kAddToValue;
  }
  /// Done twice it leaves more than done once.
  bool adds_to_list() const {
    return (kind == Kind::kAdd || kind == Kind::kPrepend || kind == Kind::kSetWhole) &&
           column->type->kind() == TypeKind::kList;
  }
};

/// USING; null where it is not written.
struct PreparedAttributes {
  ExpressionPtr timestamp, ttl, timeout;
};

/// What is fixed once for a statement or a batch before anything is made.
struct WriteMoment {
  int64_t timestamp_us = 0;
  int64_t now_s = 0;  // what TTLs count from; a client may say it
  /// The node's time, seconds since 1970: what is deleted is dated by it, whatever a client says,
  /// for the date decides when a tombstone may be purged.
  int64_t dated_s = 0;
  int64_t clock_skew_s = 0;
  std::vector<std::string>* warnings = nullptr;
  /// A TTL and the second at which it ends.
  struct Expiry {
    int32_t ttl_s;
    int64_t expiry_s;
  };
  /// When something written now with a TTL expires. The two say together when it was written, which
  /// is dated_s also where the client's now is another; so what has expired before the write does
  /// so clock_skew_s before it at the earliest.
  Expiry expiry_of(int32_t ttl_s) const;
  const ValueGuard* guard = nullptr;  // null: values are not looked at
};

/// Path ids of new list elements: one source for a statement or a whole batch, so that their order
/// is that of the elements.
class ListCellIds {
 public:
  ListCellIds(base::Random& random, int64_t now_us) : random_(random), now_us_(now_us) {}
  /// Paths of `count` elements at the end or at the front, in the order of the elements.
  std::vector<Bytes> append(size_t count);
  std::vector<Bytes> prepend(size_t count);

 private:
  // A path is a time UUID whose sequence orders the elements of one moment. Appended ones count
  // up; each block of prepended ones goes before the last block, in a time that runs backwards.
  Bytes make(uint64_t ticks, uint32_t sequence);
  base::Random& random_;
  const int64_t now_us_;
  uint32_t next_append_ = 1u << 29, next_prepend_ = 1u << 29;
};

/// The live elements of lists that a statement must know before it writes; of a column of one cell
/// its value, as an element without a path.
struct ListContents {
  /// A live element of a list with its path, or the value of a column of one cell without one.
  struct Element {
    Bytes path, value;
    int64_t timestamp_us = 0;
  };
  /// What one column of one row holds.
  struct Entry {
    Bytes partition_key, clustering_key;  // clustering key "" with is_static: a static column
    bool is_static = false;
    uint32_t column_id = 0;
    std::vector<Element> elements;
  };
  std::vector<Entry> entries;
  /// What was read of a column of that row; null if it was not read. Linear: statements read few
  /// lists.
  const std::vector<Element>* find(BytesView partition_key, BytesView clustering_key,
                                   const ColumnSchema& column) const;
};

/// Where a statement writes.
struct BoundTarget {
  // The product of both: each row of `clustering` in each partition.
  std::vector<PartitionTarget> partitions;
  BoundClustering clustering;  // of an INSERT one exact row, or nothing said when it has none
};

/// An INSERT, UPDATE or DELETE, checked against one schema snapshot. Immutable, so that executions
/// share it; what was bound is in the execution's own values.
class ModifyStatement final : public Statement {
 public:
  /// Which statement it is.
  enum class Kind : uint8_t { kInsert, kUpdate, kDelete };

  bool is_current(const SchemaSnapshot& schema) const override;
  void required_access(RequiredAccess& out) const override;
  Task<Result<StatementResult>> execute(ExecuteContext& context,
                                        std::span<const BoundValue> values) const override;

  const TableSchema& table() const { return *table_; }
  /// The table of the snapshot that the statement was prepared with.
  const TablePtr& shared_table() const { return table_; }
  Kind kind() const { return kind_; }
  /// USING TIMESTAMP is written; its value may still be unset.
  bool has_timestamp() const { return attributes_.timestamp != nullptr; }
  bool has_timeout() const { return attributes_.timeout != nullptr; }
  /// Some operation depends on what is stored: read_lists() or collect_lists() before
  /// add_mutations().
  bool needs_read() const { return needs_read_; }
  const Conditions& conditions() const { return conditions_; }
  bool has_conditions() const { return conditions_.any(); }
  /// Of a conditional statement that stands alone.
  const ConditionalShapePtr& shape() const { return shape_; }
  const PreparedAttributes& attributes() const { return attributes_; }
  /// Whether any static column is assigned or deleted.
  bool writes_static() const { return !static_operations_.empty(); }
  /// Whether it names rows, whatever it does to them.
  bool names_rows() const;
  /// It is of a partition's static columns alone.
  bool is_static_only() const { return !names_rows() && !table_->clustering().empty(); }
  /// IN in WHERE, but of one value.
  bool has_partition_in() const { return where_.has_partition_key_in(); }
  /// Errors: kInvalid, as bind_target() has them for a partition key.
  Result<void> check_partitions(EvalContext& context, uint32_t product_max) const;
  /// Of one row's clustering values. Errors: kInvalid, together they are too long, or empty where a
  /// compact table takes no empty one.
  Result<void> check_row_keys(std::span<const Bytes> values) const;
  bool has_clustering_in() const;
  /// It deletes a range of rows, or a partition.
  bool deletes_range(const BoundTarget& target) const {
    return deletes_rows_ && !target.clustering.exact;
  }
  /// Whether add_mutations() may take longer than a piece of work on the loop.
  bool is_long_to_make(const ExecuteContext& context, std::span<const BoundValue> values,
                       const ListContents* lists) const;
  /// The guardrail on operations on lists that read.
  Result<void> check_list_reads(const Guardrails& guardrails) const;
  /// The timestamp of USING, or `otherwise`. Errors: kInvalid.
  Result<int64_t> timestamp(EvalContext& context, int64_t otherwise) const;

  /// Where it writes, for one that must know before add_mutations().
  Result<BoundTarget> bind_target(EvalContext& context, uint32_t product_max) const;

  /// Appends what the statement changes, one mutation for each partition. `lists` holds what
  /// read_lists() found, or is null if the statement needs none. `target`: what bind_target() said,
  /// or null.
  Result<void> add_mutations(EvalContext& context, const WriteMoment& moment, ListCellIds& ids,
                             const ListContents* lists, uint32_t product_max,
                             std::vector<storage::Mutation>& out,
                             const BoundTarget* target = nullptr) const;
  /// Appends what an UPDATE of counters adds, one for each partition.
  Result<void> add_increments(EvalContext& context, uint32_t product_max,
                              std::vector<replication::CounterIncrement>& out) const;
  /// The lists of a row (null: there is none) and of the partition's header that add_mutations()
  /// needs. What `lists` has already is not copied again.
  Result<void> collect_lists(const storage::PartitionData& partition, const storage::RowData* row,
                             int64_t now_s, ListContents& lists) const;
  /// Reads the lists that add_mutations() needs.
  Task<Result<ListContents>> read_lists(ExecuteContext& context, EvalContext& evaluation,
                                        base::Deadline deadline) const;

 private:
  friend class ModifyPreparer;
  struct RowWrite;  // one call of add_mutations() (execute/make_mutations.cc)

  /// Seconds, 0 for none: USING TTL, otherwise the table's. Errors: kInvalid.
  Result<int32_t> ttl(EvalContext& context) const;
  /// As Cassandra: errors in the keys come before errors in USING.
  Result<void> check_keys(EvalContext& context, uint32_t product_max) const;
  /// The value of a compact table that has none to give. Errors: kInvalid where one is declared.
  Result<void> add_empty_value(const WriteMoment& moment, int32_t ttl_s,
                               std::vector<storage::Cell>& cells) const;
  /// What the operations add to counters, decrements negative; unset ones are left out. Errors:
  /// kInvalid.
  Result<void> add_deltas(const std::vector<ColumnOperation>& operations, EvalContext& context,
                          std::vector<replication::CounterDelta>& out) const;
  /// What the cell that keeps the bytes of a lossy clustering key says; unset: no cell is needed.
  std::optional<Bytes> key_cell_value(std::span<const BytesView> values) const;
  /// add_mutations() of an INSERT whose values are bound, JSON's as well.
  Result<void> add_insert(EvalContext& context, const WriteMoment& moment, int32_t ttl_s,
                          ListCellIds& ids, std::vector<storage::Mutation>& out,
                          const BoundTarget* target) const;
  /// The keys of an INSERT. `originals` gets the clustering values as they are.
  Result<void> insert_partition_key(EvalContext& context, Bytes& key) const;
  Result<void> insert_clustering_key(EvalContext& context, Bytes& key,
                                     std::vector<BytesView>* originals) const;
  /// bind_target() of an INSERT: one partition, one row or none.
  Result<BoundTarget> bind_insert_target(EvalContext& context) const;
  /// INSERT JSON: the values of the columns become bound values.
  Result<std::vector<BoundValue>> decode_json(const BoundValue& text, base::Arena& arena,
                                              int64_t now_ms) const;
  /// From what was read for them; counts in `work`.
  Result<void> collect_lists(std::span<const storage::ReadResult> results, int64_t now_s,
                             ListContents& lists, ReadWork& work) const;
  Result<void> collect_lists(const storage::PartitionData& partition, BytesView record,
                             BytesView clustering_key,
                             const std::vector<ColumnOperation>& operations, bool is_static,
                             bool may_be_known, int64_t now_s, ListContents& lists) const;

  TablePtr table_;
  Kind kind_ = Kind::kInsert;
  PreparedAttributes attributes_;
  // INSERT: the key's values in order.
  std::vector<ExpressionPtr> partition_values_, clustering_values_;
  // UPDATE and DELETE.
  Restrictions where_;
  std::vector<ColumnOperation> static_operations_, regular_operations_;  // by column id
  std::vector<IndexLimit> clustering_limits_;  // of indexes on words of clustering columns
  // What follows from the text alone. Set by ModifyPreparer.
  bool writes_rows_ = true;    // false: only static columns are touched
  bool deletes_rows_ = false;  // DELETE without columns
  bool lacks_rows_ = false;    // DELETE of columns that names no rows: fails where there are any
  bool needs_read_ = false;
  bool may_be_complete_ = false;  // INSERT of every regular column (rule 14)
  bool lossy_clustering_ = false;
  bool repeats_columns_ = false;  // several operations on one column: cells must be sorted
  // INSERT JSON. DEFAULT UNSET leaves columns alone that the text does not name, DEFAULT NULL
  // deletes them.
  ExpressionPtr json_;
  bool json_default_unset_ = false;
  Conditions conditions_;
  ConditionalShapePtr shape_;
  std::vector<std::string> restricted_masks_;  // masked columns that IF restricts
};

/// What is refused of a batch whatever its values are.
class BatchCheck {
 public:
  /// For each statement of the batch, before check().
  void add(const ModifyStatement& statement);
  /// `has_timestamp`: the batch itself. Errors: kInvalid.
  Result<void> check(BatchType type, bool has_timestamp) const;

 private:
  // Over all statements that were added.
  const ModifyStatement* first_ = nullptr;
  bool has_conditions_ = false, has_counters_ = false, has_others_ = false;
  bool has_timestamps_ = false, has_several_tables_ = false;
};

/// A BATCH of statements that are checked each for itself. Immutable.
class BatchStatement final : public Statement {
 public:
  bool is_current(const SchemaSnapshot& schema) const override;
  void required_access(RequiredAccess& out) const override;
  Task<Result<StatementResult>> execute(ExecuteContext& context,
                                        std::span<const BoundValue> values) const override;

 private:
  friend class ModifyPreparer;
  // USING of the batch; null where it is not written.
  BatchType type_ = BatchType::kLogged;
  ExpressionPtr timestamp_, timeout_;
  std::vector<std::shared_ptr<const ModifyStatement>> statements_;
};

}  // namespace tetrad::cql
