// SPDX-License-Identifier: Apache-2.0
// How far vectors are from the one that a query names. One function for the replica that looks for
// near rows and for the coordinator that puts them in order: both get the same number from the same
// bytes, on every node.
//
//   similarity    distance, smaller is nearer
//   cosine        - a·b / |b|          a is the query's: its length changes no order
//   dot product   - a·b
//   euclidean     |a - b|²
//
// Vectors are as CQL lays them out: one big-endian float behind the other. Sums are of doubles, in
// an order of their own that does not depend on the machine.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "base/bytes.h"

namespace tetrad::storage {

/// Numbers are in messages between nodes: never renumber.
enum class Similarity : uint8_t { kCosine = 0, kDotProduct = 1, kEuclidean = 2 };
inline constexpr uint8_t kSimilaritiesEnd = 3;

/// What is wrong with a vector, for an index of it.
enum class VectorFault : uint8_t {
  kNone,
  kNotFinite,  // it has an element that is NaN or infinite
  kZero,       // cosine: it has no direction
};

/// Floats of a vector; `vector` has four bytes for each.
std::vector<float> floats_of(BytesView vector);
VectorFault fault_of(Similarity similarity, BytesView vector);

/// The vector that a query names.
class QueryVector {
 public:
  QueryVector(Similarity similarity, BytesView vector);

  Similarity similarity() const { return similarity_; }
  size_t dimension() const { return elements_.size(); }
  const std::vector<float>& elements() const { return elements_; }
  /// Unset: the vector has another dimension, or a fault.
  std::optional<double> distance_of(BytesView vector) const;

 private:
  Similarity similarity_;
  std::vector<float> elements_;
};

}  // namespace tetrad::storage
