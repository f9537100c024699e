// SPDX-License-Identifier: Apache-2.0
// What the WHERE of a materialized view says of the primary key of its base, besides IS NOT NULL:
// which rows of the base the view has. It depends on the key alone, so a row is in the view for good
// or never.
//
// The relations are checked and tested by the code of SELECT's WHERE (restrictions.h). The schema
// has them as a text (ViewDefinition::where), which every reader of the schema parses again.
#pragma once

#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "cql/prepare/restrictions.h"
#include "cql/schema/schema_snapshot.h"

namespace tetrad::cql {

class ViewCondition;
/// Null: the view has all rows of its base.
using ViewConditionPtr = std::shared_ptr<const ViewCondition>;

/// The condition of one view. Immutable, for all threads.
class ViewCondition {
 public:
  /// Of `where`, the text in the schema. `types` has the user types of the base's keyspace. Errors:
  /// kSyntax, kInvalid, kFunctionFailure: it does not fit the base, or a value has no constant.
  static Result<ViewConditionPtr> read(std::string_view where, TablePtr base,
                                       const SchemaSnapshot& types);

  ViewCondition(const ViewCondition&) = delete;
  ViewCondition& operator=(const ViewCondition&) = delete;

  /// `key`: the values of the base's partition key, then of its clustering columns.
  bool matches(std::span<const BytesView> key) const;

 private:
  explicit ViewCondition(TablePtr base) : base_(std::move(base)) {}
  /// Errors: as read().
  Result<void> bind(const std::vector<ast::Relation>& relations, const SchemaSnapshot& types);

  const TablePtr base_;  // the restrictions point to its columns
  Restrictions restrictions_;
  base::Arena arena_;  // of the filters' values
  std::vector<BoundFilter> filters_;
  std::vector<size_t> places_;  // of the filters' slots in a key
};

/// Calls that system_schema.views and DESCRIBE show for operators (system."_add"(1, 2)) become
/// operators again.
void restore_operators(std::vector<ast::Relation>& relations);
/// Errors: kInvalid, there is a bind marker in the relations.
Result<void> check_no_view_markers(std::vector<ast::Relation> relations);
/// The relations of a view as SELECT would check them together. Errors: kInvalid.
Result<void> check_view_relations(const std::vector<ast::Relation>& relations,
                                  const TableSchema& base, const SchemaSnapshot& schema);
/// The text of the relations for the schema: it reads as the same relations.
std::string view_where_text(std::vector<ast::Relation> relations);
/// The text after a column of the base was renamed. Errors: kSyntax, it does not read.
Result<std::string> renamed_in_where(std::string_view where, std::string_view from,
                                     const std::string& to);
/// The first view of the keyspace, by name, that has a condition; "": none. Errors: kInvalid, one of
/// the conditions does not read.
Result<std::string> view_with_condition(const SchemaSnapshot& schema,
                                        const KeyspaceSchema& keyspace);

}  // namespace tetrad::cql
