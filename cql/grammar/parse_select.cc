// SPDX-License-Identifier: Apache-2.0
// SELECT.
#include "cql/grammar/parser_core.h"

namespace tetrad::cql {

ast::Select Parser::select() {
  ast::Select result;
  result.position = start_;
  expect(Keyword::kSelect);
  // JSON and DISTINCT may name columns too: they are themselves when a select list follows.
  const auto introduces = [&](Keyword keyword) {
    return is(keyword) && !is(Keyword::kAs, 1) &&
           (starts_selector(index_ + 1) || is_any({TokenKind::kStar, TokenKind::kMinus}, 1));
  };
  // JSON and DISTINCT may also be columns: what follows decides.
  if (introduces(Keyword::kJson)) {
    advance();
    result.json = true;
  }
  if (introduces(Keyword::kDistinct)) {
    advance();
    result.distinct = true;
  }
  result.items = select_items();
  expect(Keyword::kFrom);
  result.from = table_name();
  if (accept(Keyword::kWhere)) result.where = where_clause();
  if (accept(Keyword::kGroup)) {
    expect(Keyword::kBy);
    do {
      result.group_by.push_back(selector());
      check_count(result.group_by.size());
    } while (accept(TokenKind::kComma));
  }
  if (accept(Keyword::kOrder)) {
    expect(Keyword::kBy);
    do {
      result.order_by.push_back(ordering());
      check_count(result.order_by.size());
    } while (accept(TokenKind::kComma));
  }
  // Clauses in one fixed order, as in Cassandra: a LIMIT before PER PARTITION LIMIT is an error.
  if (accept(Keyword::kPer)) {
    expect(Keyword::kPartition);
    expect(Keyword::kLimit);
    result.per_partition_limit = integer_or_marker();
  }
  if (accept(Keyword::kLimit)) result.limit = integer_or_marker();
  if (accept(Keyword::kAllow)) {
    expect(Keyword::kFiltering);
    result.allow_filtering = true;
  }
  // As ScyllaDB has it, behind everything else.
  if (is(Keyword::kUsing) && is_timeout(1)) {
    advance();
    result.timeout = timeout();
  }
  return result;
}

// ANN OF has a direction in the grammar, which is checked when the statement is prepared.
ast::Ordering Parser::ordering() {
  ast::Ordering result;
  result.column = name();
  if (accept(Keyword::kAnn)) {
    expect(Keyword::kOf);
    result.ann_of = term();
  }
  if (accept(Keyword::kDesc)) {
    result.descending = true;
  } else {
    accept(Keyword::kAsc);
  }
  return result;
}

}  // namespace tetrad::cql
