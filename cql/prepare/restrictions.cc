// SPDX-License-Identifier: Apache-2.0
// The relations of a WHERE clause put together: joined where they are of the same columns, and
// checked as a whole.
//
// Builder::run, in the order in which Cassandra finds errors (its StatementRestrictions):
//
// 1. add(): each relation is read by itself (relation_reader.cc) and placed: on the token, a column
//    of the partition key, clustering columns (sorted by position), another column, or among the
//    negated ones. Relations of one column are merged where they may be.
// 2. find_indexes(): whether any index serves any condition. The later checks depend on it, since
//    an index takes the place of ALLOW FILTERING.
// 3. check_partition_key(): partitions by their keys, or a range of the ring (is_key_range_).
// 4. check_clustering(): how many restrictions select without a gap (clustering_prefix_). The
//    others are tests.
// 5. check_negated(), check_others(): conditions that only filters or an index answer.
// 6. check_index_use(): which conditions the primary key leaves to indexes (unanswered_), whether
//    indexes serve all of them, and the index that is read (access_path.h).
// 7. choose_filters(): what is tested on each row.
//
// The result refers to columns of the table, so the statement keeps the table.
#include "cql/prepare/restrictions.h"

#include <algorithm>
#include <tuple>
#include <utility>

#include "cql/grammar/ast_print.h"
#include "cql/prepare/relation_reader.h"

namespace tetrad::cql {

namespace {

// Cassandra's text names its own file; drivers and users look for exactly this text.
std::unexpected<Error> requires_filtering(bool may_be_allowed) {
  return fail(ErrorCode::kInvalid,
              "Cannot execute this query as it might involve data filtering and thus may have "
              "unpredictable performance. {}",
              may_be_allowed
                  ? "If you want to execute this query despite the performance unpredictability, "
                    "use ALLOW FILTERING"
                  : "Executing this query despite the performance unpredictability with ALLOW "
                    "FILTERING has been disabled by the option allow_filtering_enabled.");
}

}  // namespace

/// Builds Restrictions relation by relation.
class Restrictions::Builder {
 public:
  Builder(ExpressionBuilder& expressions, WhereOf of, bool allow_filtering, bool only_static,
          const ColumnSchema* nearest_by)
      : expressions_(expressions),
        table_(expressions.table()),
        of_(of),
        allow_filtering_(allow_filtering),
        only_static_(only_static),
        nearest_by_(nearest_by) {
    result_.table_ = &table_;
    result_.partition_.resize(table_.partition_key().size());
    result_.of_ = of;
    result_.filtering_enabled_ = expressions.settings().guardrails.allow_filtering;
  }

  Result<Restrictions> run(const std::vector<ast::Relation>& relations) {
    for (const ast::Relation& relation : relations) TETRAD_TRY_VOID(add(relation));
    TETRAD_TRY_VOID(check_change_feed());
    TETRAD_TRY_VOID(check_nearest_alone());
    find_indexes();
    TETRAD_TRY_VOID(check_partition_key());
    TETRAD_TRY_VOID(check_clustering());
    TETRAD_TRY_VOID(check_negated());
    TETRAD_TRY_VOID(check_others());
    TETRAD_TRY_VOID(check_index_use());
    choose_filters();
    return std::move(result_);
  }

 private:
  // Errors of one relation come before those of the whole, in the order of the text.
  Result<void> add(const ast::Relation& relation) {
    if (of_ == WhereOf::kView && relation.op == ast::RelationOperator::kIsNotNull) {
      // Of a column that must have a value to be in the view's key: no test of the base's key.
      TETRAD_TRY_VOID(expressions_.column(relation.columns[0]));
      return {};
    }
    TETRAD_TRY(RestrictionPtr restriction, read_relation(relation, expressions_, of_));
    if (relation.target == ast::Relation::Target::kChangeFeed) {
      if (result_.change_feed_) {
        return fail(ErrorCode::kInvalid, "{}() can only be restricted once", kChangeFeedFunction);
      }
      result_.change_feed_ = std::move(restriction->equal.items[0]);
      return {};
    }
    if (relation.target != ast::Relation::Target::kToken) return place(std::move(restriction));
    if (!result_.token_) {
      result_.token_ = std::move(restriction);
      return {};
    }
    return merge(*result_.token_, std::move(restriction), ", ");
  }

  // --- joining ---

  static std::vector<const ColumnSchema*> common_columns(const Restriction& a,
                                                         const Restriction& b) {
    std::vector<const ColumnSchema*> common;
    for (const ColumnSchema* column : a.columns) {
      if (std::ranges::find(b.columns, column) != b.columns.end()) common.push_back(column);
    }
    return common;
  }

  /// Adds `next` to what is already said of the same columns.
  Result<void> merge(Restriction& present, RestrictionPtr next, std::string_view between) const {
    // `between` differs as Cassandra's texts do.
    const std::string names = join_names(common_columns(present, *next), between);
    if (present.kind == Restriction::Kind::kEqual) {
      return fail(ErrorCode::kInvalid,
                  "{} cannot be restricted by more than one relation if it includes an Equal",
                  names);
    }
    if (present.kind == Restriction::Kind::kIn) {
      return fail(ErrorCode::kInvalid,
                  "{} cannot be restricted by more than one relation if it includes a IN", names);
    }
    if (present.kind == Restriction::Kind::kLike) {
      return fail(ErrorCode::kInvalid,
                  "{} cannot be restricted by more than one relation if it includes a LIKE", names);
    }
    // Conditions on elements of one collection add up: all of them must hold.
    if (present.kind == Restriction::Kind::kContains) {
      if (next->kind != Restriction::Kind::kContains) {
        return fail(ErrorCode::kInvalid,
                    "Collection column {} can only be restricted by CONTAINS, CONTAINS KEY, or "
                    "map-entry equality",
                    names);
      }
      std::ranges::move(next->contains, std::back_inserter(present.contains));
      std::ranges::move(next->contains_key, std::back_inserter(present.contains_key));
      std::ranges::move(next->entries, std::back_inserter(present.entries));
      return {};
    }
    if (next->kind != Restriction::Kind::kSlice) {
      return fail(ErrorCode::kInvalid,
                  "{} \"{}\" cannot be restricted by both an equality and an inequality relation",
                  &present == result_.token_.get() ? "Columns" : "Column", names);
    }
    if (present.lower && next->lower) {
      return fail(ErrorCode::kInvalid,
                  "More than one restriction was found for the start bound on {}", names);
    }
    if (present.upper && next->upper) {
      return fail(ErrorCode::kInvalid,
                  "More than one restriction was found for the end bound on {}", names);
    }
    if (next->lower) present.lower = std::move(next->lower);
    if (next->upper) present.upper = std::move(next->upper);
    // Bounds of a tuple and of its first column may meet: the longer list of columns wins, and each
    // bound knows how many of them it has (column_count).
    if (next->columns.size() > present.columns.size()) {
      if (next->columns.front() == present.columns.front()) present.columns = next->columns;
    }
    present.is_multi = present.is_multi || next->is_multi;
    return {};
  }

  Result<void> place(RestrictionPtr restriction) {
    const ColumnSchema& column = restriction->first();
    // Negated relations select nothing; they are always tests.
    if (restriction->kind == Restriction::Kind::kNotIn ||
        restriction->kind == Restriction::Kind::kNotContains) {
      auto& to = column.is_primary_key() ? result_.negated_ : result_.others_;
      to.push_back(std::move(restriction));
      return {};
    }
    if (column.kind == ColumnKind::kPartitionKey) {
      auto& slot = result_.partition_[column.position];
      if (!slot) {
        slot = std::move(restriction);
        return {};
      }
      return merge(*slot, std::move(restriction), " ,");
    }
    if (column.kind == ColumnKind::kClustering) return place_clustering(std::move(restriction));
    for (auto& other : result_.others_) {
      if (other->kind == Restriction::Kind::kNotIn ||
          other->kind == Restriction::Kind::kNotContains) {
        continue;
      }
      if (other->columns.front() == &column) return merge(*other, std::move(restriction), " ,");
    }
    result_.others_.push_back(std::move(restriction));
    return {};
  }

  // Keeps clustering_ sorted by the position of the first column. Without filtering and indexes a
  // gap behind a slice is refused here, since Cassandra finds it while it adds relations, before it
  // looks at the partition key.
  Result<void> place_clustering(RestrictionPtr restriction) {
    auto& all = result_.clustering_;
    for (auto& present : all) {
      const bool overlaps = std::ranges::any_of(present->columns, [&](const ColumnSchema* c) {
        return std::ranges::find(restriction->columns, c) != restriction->columns.end();
      });
      if (!overlaps) continue;
      if (present->columns.front() != restriction->columns.front() &&
          present->kind == Restriction::Kind::kSlice &&
          restriction->kind == Restriction::Kind::kSlice) {
        return fail(ErrorCode::kInvalid,
                    "Column \"{}\" cannot be restricted by two inequalities not starting with the "
                    "same column",
                    join_names(common_columns(*present, *restriction), ", "));
      }
      return merge(*present, std::move(restriction), " ,");
    }
    const bool needs_order =
        !allow_filtering_ && !(may_use_indexes() && has_index(table_, *restriction));
    if (!all.empty() && needs_order) {
      const Restriction& last = *all.back();
      if (last.kind == Restriction::Kind::kSlice &&
          restriction->first().position > last.first().position) {
        return fail(ErrorCode::kInvalid,
                    "Clustering column \"{}\" cannot be restricted (preceding column \"{}\" is "
                    "restricted by a non-EQ relation)",
                    restriction->first().name, last.first().name);
      }
    }
    const auto place = std::ranges::find_if(all, [&](const RestrictionPtr& present) {
      return present->first().position > restriction->first().position;
    });
    if (place != all.end() && restriction->kind == Restriction::Kind::kSlice && needs_order) {
      return fail(ErrorCode::kInvalid,
                  "PRIMARY KEY column \"{}\" cannot be restricted (preceding column \"{}\" is "
                  "restricted by a non-EQ relation)",
                  (*place)->first().name, restriction->first().name);
    }
    all.insert(place, std::move(restriction));
    return {};
  }

  // --- indexes ---

  bool may_use_indexes() const { return of_ == WhereOf::kSelect && !table_.indexes.empty(); }

  // Indexes serve SELECT only.
  void find_indexes() {
    if (!may_use_indexes()) return;
    const auto served = [&](const RestrictionPtr& restriction) {
      return restriction && has_index(table_, *restriction);
    };
    clustering_has_index_ = std::ranges::any_of(result_.clustering_, served);
    has_index_ = clustering_has_index_ || std::ranges::any_of(result_.partition_, served) ||
                 std::ranges::any_of(result_.others_, served) || has_vector_index();
  }

  // --- ORDER BY ... ANN OF ---

  /// To Cassandra it is one more relation of its column.
  // merge() refuses what may not stand beside it, with the texts of merged relations.
  Result<void> check_nearest_alone() const {
    if (nearest_by_ == nullptr) return {};
    for (const auto* all : {&result_.partition_, &result_.clustering_, &result_.others_}) {
      for (const RestrictionPtr& restriction : *all) {
        if (!restriction || restriction->columns.front() != nearest_by_) continue;
        RestrictionPtr none = std::make_unique<Restriction>();
        none->columns.push_back(nearest_by_);
        TETRAD_TRY_VOID(merge(*restriction, std::move(none), " ,"));
      }
    }
    return {};
  }

  bool is_indexed(const ColumnSchema& column) const {
    return std::ranges::any_of(
        table_.indexes, [&](const IndexSchema& index) { return index.column == column.name; });
  }
  bool has_vector_index() const {
    return nearest_by_ != nullptr &&
           std::ranges::any_of(table_.indexes, [&](const IndexSchema& index) {
             return index.column == nearest_by_->name && is_vector_index(index, *nearest_by_->type);
           });
  }

  /// What WHERE may have beside it: what the primary key answers, and indexed columns.
  Result<void> check_beside_nearest() const {
    const DataType& type = *nearest_by_->type;
    if (type.kind() != TypeKind::kVector || type.element()->kind() != TypeKind::kFloat) {
      return fail(ErrorCode::kInvalid, "ANN ordering is only supported on float vector indexes");
    }
    if (!is_indexed(*nearest_by_)) {
      return fail(ErrorCode::kInvalid, "ANN ordering by vector requires the column to be indexed");
    }
    const auto lacks_index = [&](const RestrictionPtr& restriction) {
      return !std::ranges::all_of(restriction->columns,
                                  [&](const ColumnSchema* column) { return is_indexed(*column); });
    };
    const bool key_needs_filtering =
        result_.is_key_range_ &&
        std::ranges::any_of(result_.partition_, [](const RestrictionPtr& restriction) {
          return restriction != nullptr;
        });
    const bool others_lack = std::ranges::any_of(result_.others_, lacks_index) ||
                             std::ranges::any_of(result_.negated_, lacks_index);
    const bool clustering_lacks = std::ranges::any_of(result_.clustering_, lacks_index) &&
                                  (result_.is_key_range_ || result_.on_token_ ||
                                   result_.clustering_prefix_ < result_.clustering_.size());
    if (key_needs_filtering || others_lack || clustering_lacks) {
      return fail(ErrorCode::kInvalid,
                  "ANN ordering by vector requires all restricted column(s) to be indexed");
    }
    // An index of another kind orders nothing.
    if (!has_vector_index() && !allow_filtering_)
      return requires_filtering(result_.filtering_enabled_);
    return {};
  }

  /// Cassandra has no other use of a vector that is indexed.
  Result<void> check_indexed_vectors() const {
    for (const RestrictionPtr& other : result_.others_) {
      if (other->first().type->kind() != TypeKind::kVector || !is_indexed(other->first())) continue;
      return fail(ErrorCode::kInvalid, "Vector indexes only support ANN queries");
    }
    return {};
  }

  /// Notes conditions that the primary key does not answer.
  void leave_to_indexes(const std::vector<RestrictionPtr>& restrictions) {
    for (const auto& restriction : restrictions) {
      if (restriction) unanswered_.push_back(restriction.get());
    }
  }

  /// After all else: what the indexes serve, and which one is looked at.
  Result<void> check_index_use() {
    // Beside token() a part of the key only tests rows.
    const bool only_tests = result_.is_key_range_ && result_.token_ != nullptr;
    if (result_.uses_index_ && result_.has_partition_key_in() && !only_tests) {
      return fail(ErrorCode::kInvalid,
                  "Select on indexed columns and with IN clause for the PRIMARY KEY are not "
                  "supported");
    }
    // A read of named partitions needs no ALLOW FILTERING for what its key answers.
    const bool scans = result_.is_key_range_ || result_.on_token_ || result_.uses_index_;
    bool is_served =
        unanswered_.empty() ? result_.clustering_.empty() : serves_all(table_, unanswered_);
    // A search for near vectors is served by SAI only, and only with an index on the vector.
    if (nearest_by_ != nullptr) {
      is_served = has_vector_index() && serves_all(table_, unanswered_, IndexClass::kSai);
    }
    // Not an error yet: Cassandra reports it after ORDER BY and LIMIT (check_filtering_allowed).
    result_.lacks_allow_filtering_ =
        of_ == WhereOf::kSelect && !allow_filtering_ && scans && !is_served;
    if (result_.uses_index_ && of_ != WhereOf::kView)
      result_.index_ = choose_index(table_, unanswered_);
    return {};
  }

  // --- the whole ---

  Result<void> check_change_feed() {
    if (!result_.change_feed_) return {};
    const auto is_equality = [](const RestrictionPtr& restriction) {
      return restriction && restriction->kind == Restriction::Kind::kEqual;
    };
    const auto& key = result_.partition_;
    const bool others = result_.token_ || !result_.clustering_.empty() ||
                        !result_.others_.empty() || !result_.negated_.empty();
    const bool whole_key = std::ranges::all_of(key, is_equality);
    const bool no_key = std::ranges::none_of(
        key, [](const RestrictionPtr& restriction) { return restriction != nullptr; });
    if (!others && (whole_key || no_key)) return {};
    return fail(ErrorCode::kInvalid,
                "With {}() nothing else can be restricted but the whole partition key, by =",
                kChangeFeedFunction);
  }

  Result<void> check_partition_key() {
    size_t restricted = 0;
    bool has_slice = false;
    std::string missing;
    for (size_t i = 0; i < result_.partition_.size(); ++i) {
      const auto& restriction = result_.partition_[i];
      if (!restriction) {
        if (!missing.empty()) missing += ", ";
        missing += table_.partition_key()[i].name;
        continue;
      }
      ++restricted;
      if (restriction->kind != Restriction::Kind::kEqual &&
          restriction->kind != Restriction::Kind::kIn) {
        has_slice = true;
      }
    }
    // is_key_range_ holds when not all columns have = or IN: then the read goes over the ring, and
    // the columns that are restricted are filters.
    const bool complete = restricted == result_.partition_.size();
    // With the whole key given as well the token only filters.
    result_.on_token_ = result_.token_ != nullptr && !complete;
    if (of_ == WhereOf::kUpdate || of_ == WhereOf::kDelete) {
      if (result_.on_token_) {
        return fail(ErrorCode::kInvalid,
                    "The token function cannot be used in WHERE clauses for {} statements",
                    statement_name(of_));
      }
      if (!complete) {
        return fail(ErrorCode::kInvalid, "Some partition key parts are missing: {}", missing);
      }
      if (has_slice) {
        return fail(ErrorCode::kInvalid,
                    "Only EQ and IN relation are supported on the partition key (unless you use "
                    "the token() function) for {} statements",
                    statement_name(of_));
      }
    }
    result_.is_key_range_ = !complete || has_slice;
    if (restricted != 0 && result_.is_key_range_ && !allow_filtering_ && !has_index_) {
      return requires_filtering(result_.filtering_enabled_);
    }
    // A restricted token takes the place of an index for the partition key.
    result_.uses_index_ =
        result_.is_key_range_ && has_index_ && (restricted != 0 || !result_.token_);
    if (result_.uses_index_ || (restricted != 0 && result_.is_key_range_)) {
      leave_to_indexes(result_.partition_);
    }
    result_.single_partition_ =
        !result_.is_key_range_ && !result_.token_ &&
        std::ranges::all_of(result_.partition_, [](const RestrictionPtr& restriction) {
          return restriction->kind == Restriction::Kind::kEqual;
        });
    return {};
  }

  Result<void> check_clustering() {
    const auto& all = result_.clustering_;
    if (only_static_ && !all.empty()) {
      if (of_ == WhereOf::kSelect) {
        return fail(ErrorCode::kInvalid,
                    "Cannot restrict clustering columns when selecting only static columns");
      }
      return fail(ErrorCode::kInvalid,
                  "Invalid restrictions on clustering columns since the {} statement modifies only "
                  "static columns",
                  statement_name(of_));
    }
    const bool has_slice = result_.has_clustering_slice();
    if (of_ == WhereOf::kUpdate && has_slice) {
      return fail(ErrorCode::kInvalid,
                  "Slice restrictions are not supported on the clustering columns in UPDATE "
                  "statements");
    }
    // `next`: the clustering column that must be restricted next to select without a gap.
    uint32_t next = 0;
    bool after_slice = false;
    for (const auto& restriction : all) {
      // CONTAINS and LIKE test a value, they do not name keys.
      const bool selects = restriction->kind != Restriction::Kind::kContains &&
                           restriction->kind != Restriction::Kind::kLike;
      if (restriction->first().position != next || after_slice || !selects) {
        if ((of_ == WhereOf::kUpdate && !table_.is_compact_storage) || allow_filtering_) break;
        if (has_index_) break;
        if (!selects) {
          return fail(ErrorCode::kInvalid,
                      "Clustering columns can only be restricted with CONTAINS with a secondary "
                      "index or filtering");
        }
        return fail(ErrorCode::kInvalid,
                    "PRIMARY KEY column \"{}\" cannot be restricted as preceding column \"{}\" is "
                    "not restricted",
                    restriction->first().name, table_.clustering()[next].name);
      }
      ++result_.clustering_prefix_;
      next += static_cast<uint32_t>(restriction->columns.size());
      after_slice = restriction->kind == Restriction::Kind::kSlice;
    }
    // In a compact table a part of the clustering key is enough.
    if (of_ == WhereOf::kUpdate && !only_static_ && (!table_.is_compact_storage || all.empty())) {
      std::string missing;
      for (const ColumnSchema& column : table_.clustering()) {
        const bool found = std::ranges::any_of(all, [&](const RestrictionPtr& restriction) {
          return std::ranges::find(restriction->columns, &column) != restriction->columns.end();
        });
        if (found) continue;
        if (!missing.empty()) missing += ", ";
        missing += column.name;
      }
      if (!missing.empty()) {
        return fail(ErrorCode::kInvalid, "Some clustering keys are missing: {}", missing);
      }
    }
    // Restrictions behind the prefix are left to an index or to filters.
    const bool needs_filtering = result_.clustering_prefix_ < all.size();
    // As Cassandra: the condition of a view counts as an index there.
    if ((has_index_ || of_ == WhereOf::kView) && needs_filtering) result_.uses_index_ = true;
    if (clustering_has_index_ && (result_.is_key_range_ || result_.on_token_)) {
      result_.uses_index_ = true;
    }
    if (result_.uses_index_ || needs_filtering) leave_to_indexes(all);
    return {};
  }

  /// Tetrad's own rule (Cassandra 5.0 has no such relations): within partitions that are named
  /// they need no ALLOW FILTERING on clustering columns.
  Result<void> check_negated() {
    if (allow_filtering_) return {};
    for (const auto& restriction : result_.negated_) {
      if (result_.is_key_range_ || restriction->first().kind == ColumnKind::kPartitionKey) {
        return requires_filtering(result_.filtering_enabled_);
      }
    }
    return {};
  }

  Result<void> check_others() {
    if (nearest_by_ != nullptr) {
      TETRAD_TRY_VOID(check_beside_nearest());
      result_.uses_index_ = true;
    } else if (of_ == WhereOf::kSelect) {
      TETRAD_TRY_VOID(check_indexed_vectors());
    }
    // What a view says of other columns is for the view to refuse (plan_view.cc).
    if (result_.others_.empty() || of_ == WhereOf::kView) return {};
    if (of_ != WhereOf::kSelect) {
      std::vector<const ColumnSchema*> columns;
      for (const auto& other : result_.others_) columns.push_back(other->columns.front());
      return fail(ErrorCode::kInvalid, "Non PRIMARY KEY columns found in where clause: {} ",
                  join_names(columns, ", "));
    }
    if (has_index_) {
      result_.uses_index_ = true;
    } else if (!allow_filtering_) {
      return requires_filtering(result_.filtering_enabled_);
    }
    leave_to_indexes(result_.others_);
    return {};
  }

  // Adds everything that the chosen read does not guarantee. A filter too many costs time; one too
  // few gives wrong rows. A view reads nothing: all are tests.
  void choose_filters() {
    const auto add = [&](const Restriction& restriction) {
      Filter filter{&restriction, {}, {}};
      // Where an index analyses texts, tests of its column must compare the analysed texts, too
      // (bound_filter.cc).
      if (nearest_by_ != nullptr) {
        filter.texts = compared_texts(table_, IndexClass::kSai, restriction);
      } else if (result_.index_) {
        filter.texts = compared_texts(table_, result_.index_->index->index_class, restriction);
      }
      for (const ColumnSchema* column : restriction.columns) {
        filter.slots.push_back(expressions_.slot_of(*column));
      }
      result_.filters_.push_back(std::move(filter));
    };
    if (result_.is_key_range_ || of_ == WhereOf::kView) {
      for (const auto& restriction : result_.partition_) {
        if (restriction) add(*restriction);
      }
    }
    // Beside an index the rows are tested by those that select them, too: a wrong value is reported
    // as that of a test.
    const bool tests_all = result_.uses_index_ &&
                           std::ranges::any_of(result_.clustering_, [&](const auto& restriction) {
                             return std::ranges::count(unanswered_, restriction.get()) != 0;
                           });
    for (size_t i = tests_all || of_ == WhereOf::kView ? 0 : result_.clustering_prefix_;
         i < result_.clustering_.size(); ++i) {
      add(*result_.clustering_[i]);
    }
    for (const auto& negated : result_.negated_) add(*negated);
    // In Cassandra's order of columns: of several wrong values the first is reported.
    std::vector<const Restriction*> others;
    for (const auto& other : result_.others_) others.push_back(other.get());
    std::ranges::stable_sort(others, {}, [](const Restriction* other) {
      const ColumnSchema& column = other->first();
      return std::tuple(column.kind == ColumnKind::kStatic, column.type->is_multi_cell(),
                        std::string_view(column.name));
    });
    for (const Restriction* other : others) add(*other);
    // What an index gives is tested: it may be more than what was asked.
    if (!result_.index_) return;
    const Restriction* const used = result_.index_->restriction;
    if (std::ranges::count(result_.filters_, used, &Filter::restriction) == 0) add(*used);
  }

  ExpressionBuilder& expressions_;
  const TableSchema& table_;
  const WhereOf of_;
  const bool allow_filtering_, only_static_;
  const ColumnSchema* const nearest_by_;
  bool has_index_ = false, clustering_has_index_ = false;  // an index serves a condition
  std::vector<const Restriction*> unanswered_;             // by the primary key
  Restrictions result_;
};

Result<Restrictions> Restrictions::build(const std::vector<ast::Relation>& relations,
                                         ExpressionBuilder& builder, WhereOf of,
                                         bool allow_filtering, bool only_static,
                                         const ColumnSchema* nearest_by) {
  return Builder(builder, of, allow_filtering, only_static, nearest_by).run(relations);
}

Result<void> Restrictions::check_filtering_allowed() const {
  if (!lacks_allow_filtering_) return {};
  return requires_filtering(filtering_enabled_);
}

}  // namespace tetrad::cql
