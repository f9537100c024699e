// SPDX-License-Identifier: Apache-2.0
// The only file that includes hnswlib: its header defines functions that may be there once only.
#include "storage/vectors/vector_graph.h"

#include <algorithm>
#include <cmath>
#include <deque>
#include <exception>
#include <hnswlib/hnswlib.h>
#include <mutex>
#include <new>
#include <shared_mutex>

#include <fmt/format.h>

namespace tetrad::storage {
namespace {

constexpr size_t kLinks = 16, kCandidates = 100;
constexpr size_t kSeed =
    100;  // of the levels: the same vectors in the same order give the same graph

/// A vector as the graph has it: cosine is the inner product of vectors of length one.
std::vector<float> graph_vector(Similarity similarity, std::vector<float> elements) {
  if (similarity != Similarity::kCosine) return elements;
  double length = 0;
  for (const float element : elements) length += static_cast<double>(element) * element;
  length = std::sqrt(length);
  if (length > 0)
    for (float& element : elements) element = static_cast<float>(element / length);
  return elements;
}

std::unique_ptr<hnswlib::SpaceInterface<float>> space_of(Similarity similarity, size_t dimension) {
  if (similarity == Similarity::kEuclidean) return std::make_unique<hnswlib::L2Space>(dimension);
  return std::make_unique<hnswlib::InnerProductSpace>(dimension);
}

Error failed(std::string_view what, const std::exception& error) {
  return Error(ErrorCode::kOverloaded, fmt::format("{}: {}", what, error.what()));
}

class HnswGraph final : public VectorGraph {
 public:
  HnswGraph(Similarity similarity, size_t dimension, size_t capacity)
      : similarity_(similarity),
        space_(space_of(similarity, dimension)),
        graph_(space_.get(), capacity, kLinks, kCandidates, kSeed) {}

  size_t size() const override {
    const std::shared_lock lock(mutex_);
    return places_.size();
  }
  size_t capacity() const override {
    const std::shared_lock lock(mutex_);
    return graph_.max_elements_;
  }

  Result<void> add(VectorPlace place, BytesView vector) override {
    try {
      const std::vector<float> elements = graph_vector(similarity_, floats_of(vector));
      const std::unique_lock lock(mutex_);
      if (places_.size() == graph_.max_elements_)
        return fail(ErrorCode::kLimit, "the graph has {} vectors already", places_.size());
      places_.push_back(std::move(place));
      graph_.addPoint(elements.data(), places_.size() - 1);
    } catch (const std::exception& error) {
      return std::unexpected(failed("adding to a graph of vectors", error));
    }
    return {};
  }

  Result<void> grow(size_t capacity) override {
    try {
      const std::unique_lock lock(mutex_);
      if (capacity > graph_.max_elements_) graph_.resizeIndex(capacity);
    } catch (const std::exception& error) {
      return std::unexpected(failed("growing a graph of vectors", error));
    }
    return {};
  }

  Result<std::vector<VectorPlace>> search(const QueryVector& query, size_t count,
                                          size_t width) const override {
    std::vector<VectorPlace> found;
    try {
      const std::vector<float> elements = graph_vector(similarity_, query.elements());
      const std::shared_lock lock(mutex_);
      const size_t looked_at = std::min(std::max(count, width), places_.size());
      if (looked_at == 0) return found;
      auto nearest = graph_.searchKnn(elements.data(), looked_at);
      while (nearest.size() > count) nearest.pop();  // the furthest comes first
      for (; !nearest.empty(); nearest.pop()) found.push_back(places_[nearest.top().second]);
    } catch (const std::exception& error) {
      return std::unexpected(failed("searching a graph of vectors", error));
    }
    return found;
  }

 private:
  const Similarity similarity_;
  mutable std::shared_mutex mutex_;
  std::unique_ptr<hnswlib::SpaceInterface<float>> space_;
  hnswlib::HierarchicalNSW<float> graph_;
  std::deque<VectorPlace> places_;  // by label
};

}  // namespace

Result<std::shared_ptr<VectorGraph>> make_vector_graph(Similarity similarity, size_t dimension,
                                                       size_t capacity) {
  try {
    return std::make_shared<HnswGraph>(similarity, dimension, capacity);
  } catch (const std::exception& error) {
    return std::unexpected(failed("making a graph of vectors", error));
  }
}

uint64_t vector_graph_bytes(size_t dimension, size_t capacity, size_t key_bytes) {
  // Vector; links of the lowest level, those above it on the average; label, its place in a table;
  // a lock, level and pointer; the row's place.
  const uint64_t each =
      4 * dimension + (2 * kLinks + 1) * 4 + 12 + 48 + 52 + sizeof(VectorPlace) + key_bytes;
  return each * capacity;
}

}  // namespace tetrad::storage
