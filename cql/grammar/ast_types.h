// SPDX-License-Identifier: Apache-2.0
// The leaves of the tree: positions, names and types as they were written.
//
// Every other header of the tree includes this one. Nodes keep what was written as far as an error
// or a name in an answer shows it: quotes, positions, the spelling of a literal.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "cql/types/keyword.h"

namespace tetrad::cql::ast {

/// Where something starts in the text: lines count from 1, columns (bytes) from 0.
/// As ANTLR counts them, since clients see them in "line 1:17 …" and tests compare the texts.
struct Position {
  int32_t line = 1;
  int32_t column = 0;
  friend bool operator==(const Position&, const Position&) = default;
};

/// One node of a tree that lives elsewhere: owned, never null until moved from, copied deeply.
/// Breaks the cycle of recursive types.
/// A moved-from box may only be destroyed or assigned to.
template <class T>
class Box {
 public:
  // Not explicit, so that a node may be given where a box is wanted.
  Box(T value) : pointer_(std::make_unique<T>(std::move(value))) {}
  Box(const Box& other) : pointer_(std::make_unique<T>(*other)) {}
  Box(Box&&) noexcept = default;
  Box& operator=(const Box& other) { return *this = Box(other); }
  Box& operator=(Box&&) noexcept = default;

  T& operator*() { return *pointer_; }
  const T& operator*() const { return *pointer_; }
  T* operator->() { return pointer_.get(); }
  const T* operator->() const { return pointer_.get(); }

 private:
  std::unique_ptr<T> pointer_;
};

/// A name of one part. `text` is the name meant: lower-cased unless it was quoted, "" undoubled.
/// `quoted` is kept because a quoted word is no native type: "text" in quotes is the name of a user
/// type.
struct Identifier {
  std::string text;
  bool quoted = false;
  Position position;
};

/// A table, view, type, index or trigger name; without a keyspace the one in use counts.
/// An empty keyspace in a session that has none in use is refused when the statement is prepared.
struct QualifiedName {
  std::optional<Identifier> keyspace;
  Identifier name;
};

/// A function or aggregate name; without a keyspace first the native ones, then those of the
/// keyspace in use.
struct FunctionName {
  std::optional<Identifier> keyspace;
  Identifier name;
};

/// A type as written. frozen<…> is no node of its own: it sets `frozen` on what it encloses.
/// A name that is no native type is kUser, whether such a type exists or not; an impossible
/// `dimension` is refused when the statement is prepared.
struct CqlType {
  /// Which of the members of CqlType are set stands behind each.
  enum class Kind : uint8_t {
    kNative,  // native, which names one
    kList,    // parameters[0]
    kSet,     // parameters[0]
    kMap,     // parameters[0] to parameters[1]
    kTuple,   // parameters, at least one
    kVector,  // parameters[0], dimension
    kUser,    // name
    kCustom,  // class_name, written as a string literal
  };
  Kind kind = Kind::kNative;
  Keyword native = Keyword::kInt;
  bool frozen = false;
  std::vector<CqlType> parameters;
  int32_t dimension = 0;
  QualifiedName name;
  std::string class_name;
  Position position;
};

}  // namespace tetrad::cql::ast
