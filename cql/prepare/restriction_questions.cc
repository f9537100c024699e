// SPDX-License-Identifier: Apache-2.0
// What WHERE says of columns: the questions that the preparation of statements, EXPLAIN and the
// execution ask of a Restrictions once it is built. None needs the values of a request.
#include <algorithm>

#include "cql/prepare/restrictions.h"

namespace tetrad::cql {

bool Restrictions::has_partition_key_in() const {
  return std::ranges::any_of(partition_, [](const RestrictionPtr& restriction) {
    return restriction && restriction->kind == Restriction::Kind::kIn;
  });
}

bool Restrictions::has_partition_key() const {
  return token_ || std::ranges::any_of(partition_, [](const RestrictionPtr& restriction) {
           return restriction != nullptr;
         });
}

// NOT IN and NOT CONTAINS of clustering columns count: they say something, though they select
// nothing.
bool Restrictions::has_clustering() const {
  return !clustering_.empty() || std::ranges::any_of(negated_, [](const RestrictionPtr& negated) {
    return negated->first().kind == ColumnKind::kClustering;
  });
}

bool Restrictions::has_clustering_slice() const {
  return std::ranges::any_of(clustering_, [](const RestrictionPtr& restriction) {
    return restriction->kind == Restriction::Kind::kSlice;
  });
}

// Whether the clustering key is named whole: one row at most for each partition.
bool Restrictions::all_clustering_equal() const {
  size_t covered = 0;
  for (const auto& restriction : clustering_) {
    if (restriction->kind != Restriction::Kind::kEqual) return false;
    covered += restriction->columns.size();
  }
  return covered == table_->clustering().size() && clustering_prefix_ == clustering_.size();
}

bool Restrictions::has_regular() const {
  return std::ranges::any_of(others_, [](const RestrictionPtr& restriction) {
    return restriction->first().kind == ColumnKind::kRegular;
  });
}

// Each restriction is in one of the lists, and a tuple restriction names several columns.
bool Restrictions::is_restricted(const ColumnSchema& column) const {
  const auto says = [&](const RestrictionPtr& restriction) {
    return restriction &&
           std::ranges::find(restriction->columns, &column) != restriction->columns.end();
  };
  return std::ranges::any_of(partition_, says) || says(token_) ||
         std::ranges::any_of(clustering_, says) || std::ranges::any_of(others_, says) ||
         std::ranges::any_of(negated_, says);
}

bool Restrictions::is_equal(const ColumnSchema& column) const {
  const auto says = [&](const RestrictionPtr& restriction) {
    return restriction && restriction->kind == Restriction::Kind::kEqual &&
           std::ranges::find(restriction->columns, &column) != restriction->columns.end();
  };
  return std::ranges::any_of(partition_, says) || std::ranges::any_of(clustering_, says);
}

bool Restrictions::is_in(const ColumnSchema& column) const {
  const auto says = [&](const RestrictionPtr& restriction) {
    return restriction && restriction->kind == Restriction::Kind::kIn &&
           std::ranges::find(restriction->columns, &column) != restriction->columns.end();
  };
  return std::ranges::any_of(partition_, says) || std::ranges::any_of(clustering_, says);
}

// Only where single_partition() holds: then each column has one equality with one item.
const Expression* Restrictions::partition_term(size_t position) const {
  return partition_[position]->equal.items.front().get();
}

// The value of `=` on a clustering column; null where there is none, or a tuple that is bound as a
// whole.
const Expression* Restrictions::clustering_term(size_t position) const {
  for (const auto& restriction : clustering_) {
    const size_t first = restriction->first().position;
    if (position < first || position >= first + restriction->columns.size()) continue;
    const auto& items = restriction->equal.items;
    return items.empty() ? nullptr : items[position - first].get();
  }
  return nullptr;
}

}  // namespace tetrad::cql
