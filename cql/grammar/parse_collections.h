// SPDX-License-Identifier: Apache-2.0
// Lists, sets and maps: of terms and of selectors.
//
// Templates, because Cassandra's grammar writes these rules twice, for terms and for selectors, and
// the errors are those of the rule in use. Included by parse_terms.cc and parse_selectors.cc only.
#pragma once

#include "cql/grammar/parser_core.h"

namespace tetrad::cql {

template <class Read>
auto Parser::items_until(TokenKind close, Read read) {
  std::vector<decltype(read())> items;
  int32_t height = 0;
  // An empty list is legal here; a comma before `close` is not.
  if (!accept(close)) {
    do {
      items.push_back(read());
      check_count(items.size());
      height = std::max(height, height_);
    } while (accept(TokenKind::kComma));
    expect(close);
  }
  set_height(height + 1);
  return items;
}

/// What follows the first item of {item, …} or {item: item, …}.
template <class Set, class Map, class Node, class Read>
Node Parser::set_or_map(Node first, ast::Position position, Read read) {
  int32_t height = height_;
  if (accept(TokenKind::kColon)) {
    Map map;
    Node first_value = read();
    map.entries.emplace_back(std::move(first), std::move(first_value));
    height = std::max(height, height_);
    while (accept(TokenKind::kComma)) {
      Node key = read();
      height = std::max(height, height_);
      expect(TokenKind::kColon);
      map.entries.emplace_back(std::move(key), read());
      check_count(map.entries.size());
      height = std::max(height, height_);
    }
    expect(TokenKind::kRightBrace);
    set_height(height + 1);
    return Node{std::move(map), position};
  }
  if (!is_any({TokenKind::kComma, TokenKind::kRightBrace})) fail_no_viable();
  Set set;
  set.items.push_back(std::move(first));
  while (accept(TokenKind::kComma)) {
    set.items.push_back(read());
    check_count(set.items.size());
    height = std::max(height, height_);
  }
  expect(TokenKind::kRightBrace);
  set_height(height + 1);
  return Node{std::move(set), position};
}

}  // namespace tetrad::cql
