// SPDX-License-Identifier: Apache-2.0
// A graph of vectors in memory (HNSW, of hnswlib): finds near ones without looking at all. It is a
// cache of rows and no truth: what it finds is looked up among the rows (rule 23). So nothing is
// ever taken out of it: a row that has changed is found at its old place, too, until the graph is
// made anew.
//
// Sixteen links a vector, a hundred candidates while it is linked, as Cassandra has them by
// default.
#pragma once

#include <memory>
#include <vector>

#include "base/bytes.h"
#include "base/result.h"
#include "base/ring_position.h"
#include "storage/vectors/distance.h"

namespace tetrad::storage {

/// The row that a vector is of.
struct VectorPlace {
  RingPosition position;
  Bytes partition_key, clustering_key;
};

/// A vector that a search found.
struct FoundVector {
  VectorPlace place;
  double distance = 0;  // of the vector as it was added; about what QueryVector says
};

/// For all threads: several search at once; who adds is alone, and waits for no search that comes
/// later. No exception of the library leaves it: after an error of add() or grow() the graph is not
/// to be used any more. Large ones take some time to destroy.
class VectorGraph {
 public:
  virtual ~VectorGraph() = default;

  // Of one moment, without waiting.
  virtual size_t size() const = 0;
  virtual size_t capacity() const = 0;
  /// What the keys of rows take beyond kGraphKeyBytes each.
  virtual uint64_t long_key_bytes() const = 0;
  /// A vector without a fault that fits_graph(), of the graph's dimension; takes some tenths of a
  /// millisecond. Errors: kLimit, it is full; kOverloaded, there is no memory.
  virtual Result<void> add(VectorPlace place, BytesView vector) = 0;
  /// Errors: kOverloaded, there is no memory.
  virtual Result<void> grow(size_t capacity) = 0;
  /// About `count` near ones, in no order; the more are looked at, `width` at least, the fewer are
  /// missed. Where checks have shown that too many are (search_width.h), more are looked at, or all,
  /// once that costs less. Errors: kOverloaded.
  virtual Result<std::vector<FoundVector>> search(const QueryVector& query, size_t count,
                                                  size_t width) const = 0;
};

/// Whether distances of the vector, and of others that fit, can be summed in floats, as graphs do.
bool fits_graph(Similarity similarity, BytesView vector);
/// Errors: kOverloaded, there is no memory.
Result<std::shared_ptr<VectorGraph>> make_vector_graph(Similarity similarity, size_t dimension,
                                                       size_t capacity);
/// Bytes that a graph takes without long_key_bytes(), estimated.
uint64_t vector_graph_bytes(size_t dimension, size_t capacity);
/// Of the keys of one row.
inline constexpr size_t kGraphKeyBytes = 64;

}  // namespace tetrad::storage
