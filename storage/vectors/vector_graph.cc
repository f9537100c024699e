// SPDX-License-Identifier: Apache-2.0
// The only file that includes hnswlib: its header defines functions that may be there once only.
#include "storage/vectors/vector_graph.h"

#include <algorithm>
#include <atomic>
#include <cmath>
#include <deque>
#include <exception>
#include <hnswlib/hnswlib.h>
#include <mutex>
#include <new>
#include <queue>
#include <shared_mutex>

#include <fmt/format.h>

#include "base/assert.h"
#include "storage/vectors/search_width.h"

namespace tetrad::storage {
namespace {

constexpr size_t kLinks = 16, kCandidates = 100;
// Of the levels: the same vectors in the same order give the same graph.
constexpr size_t kSeed = 100;
// A candidate of a search costs as much as so many vectors that are measured in the order of memory.
constexpr size_t kMeasuredPerCandidate = 64;
/// Most that are measured to check a search: some milliseconds.
constexpr size_t kCheckedMost = 200'000;

double square_of(const std::vector<float>& elements) {
  double square = 0;
  for (const float element : elements) square += static_cast<double>(element) * element;
  return square;
}

double length_of(const std::vector<float>& elements) { return std::sqrt(square_of(elements)); }

void shorten(std::vector<float>& elements, double length) {
  if (length == 0) return;
  for (float& element : elements) element = static_cast<float>(element / length);
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
      : similarity_(similarity), space_(space_of(similarity, dimension)), capacity_(capacity) {}

  size_t size() const override { return size_.load(std::memory_order_relaxed); }
  size_t capacity() const override { return capacity_.load(std::memory_order_relaxed); }
  uint64_t long_key_bytes() const override {
    return long_key_bytes_.load(std::memory_order_relaxed);
  }

  Result<void> add(VectorPlace place, BytesView vector) override {
    try {
      std::vector<float> elements = floats_of(vector);
      // Cosine is the inner product of vectors of length one.
      if (similarity_ == Similarity::kCosine) shorten(elements, length_of(elements));
      const std::lock_guard turn(turn_);
      const std::unique_lock lock(mutex_);
      if (places_.size() == capacity())
        return fail(ErrorCode::kLimit, "the graph has {} vectors already", places_.size());
      if (!graph_) {
        graph_ = std::make_unique<Hnsw>(space_.get(), capacity(), kLinks, kCandidates, kSeed);
      }
      const size_t key_bytes = place.partition_key.size() + place.clustering_key.size();
      if (key_bytes > kGraphKeyBytes) long_key_bytes_ += key_bytes - kGraphKeyBytes;
      places_.push_back(std::move(place));
      graph_->addPoint(elements.data(), places_.size() - 1);
      size_ = places_.size();
    } catch (const std::exception& error) {
      return std::unexpected(failed("adding to a graph of vectors", error));
    }
    return {};
  }

  Result<void> grow(size_t capacity) override {
    try {
      const std::lock_guard turn(turn_);
      const std::unique_lock lock(mutex_);
      if (capacity <= capacity_) return {};
      if (graph_) graph_->resizeIndex(capacity);
      capacity_ = capacity;
    } catch (const std::exception& error) {
      return std::unexpected(failed("growing a graph of vectors", error));
    }
    return {};
  }

  Result<std::vector<FoundVector>> search(const QueryVector& query, size_t count,
                                          size_t width) const override {
    std::vector<FoundVector> found;
    try {
      std::vector<float> elements = query.elements();
      const bool is_product = similarity_ != Similarity::kEuclidean;
      const double length = is_product ? length_of(elements) : 0;
      if (is_product) shorten(elements, length);
      std::unique_lock turn(turn_);
      const std::shared_lock lock(mutex_);
      turn.unlock();
      if (places_.empty() || count == 0) return found;
      Nearest nearest = search_by(elements, count, std::max(count, width));
      for (; !nearest.empty(); nearest.pop()) {
        const auto& [distance, label] = nearest.top();
        // hnswlib's of products is one less the product.
        found.push_back({places_[label], is_product ? (distance - 1.0) * length : distance});
      }
    } catch (const std::exception& error) {
      return std::unexpected(failed("searching a graph of vectors", error));
    }
    return found;
  }

 private:
  using Nearest = std::priority_queue<std::pair<float, hnswlib::labeltype>>;

  /// By the graph, or one by one.
  Nearest search_by(const std::vector<float>& elements, size_t count, size_t least) const {
    const size_t size = places_.size();
    const size_t width = width_.width(least);
    if (width >= size / kMeasuredPerCandidate) return measure(elements, count, 0, size);
    Nearest nearest = graph_->searchKnn(elements.data(), width);
    while (nearest.size() > count) nearest.pop();  // the furthest comes first
    const size_t measured = std::min(size, kCheckedMost);
    if (!width_.is_checked(measured == size)) return nearest;
    // Another part each time, where it is not all of them.
    const size_t parts = (size + measured - 1) / measured;
    const size_t first = std::min(
        next_part_.fetch_add(1, std::memory_order_relaxed) % parts * measured, size - measured);
    Nearest exact = measure(elements, count, first, first + measured);
    check(nearest, exact, least, width, first, first + measured);
    return measured == size ? exact : nearest;
  }

  /// The nearest of those with the numbers from `first` on, below `end`.
  Nearest measure(const std::vector<float>& elements, size_t count, size_t first,
                  size_t end) const {
    Nearest nearest;
    const auto distance_to = space_->get_dist_func();
    for (size_t i = first; i < end; ++i) {
      const auto number = static_cast<hnswlib::tableint>(i);
      const float distance = distance_to(elements.data(), graph_->getDataByInternalId(number),
                                         space_->get_dist_func_param());
      if (nearest.size() == count && distance >= nearest.top().first) continue;
      nearest.emplace(distance, graph_->getExternalLabel(number));
      if (nearest.size() > count) nearest.pop();
    }
    return nearest;
  }

  /// Of the nearest of a part, those that are no further than the furthest found should be found.
  void check(Nearest found, Nearest exact, size_t least, size_t width, size_t first,
             size_t end) const {
    if (found.empty()) return;
    const float furthest = found.top().first;
    std::vector<hnswlib::labeltype> there;
    for (; !found.empty(); found.pop()) there.push_back(found.top().second);
    size_t hits = 0, missed = 0;
    for (; !exact.empty(); exact.pop()) {
      const auto& [distance, label] = exact.top();
      if (std::ranges::find(there, label) != there.end())
        ++hits;
      else if (distance < furthest)
        ++missed;
    }
    TETRAD_ASSERT(hits <= end - first);
    width_.note(least, width, hits, missed);
  }

  const Similarity similarity_;
  // Who wants the graph waits with `turn_`: searches that follow one another would keep out who
  // adds.
  mutable std::mutex turn_;
  mutable std::shared_mutex mutex_;
  std::unique_ptr<hnswlib::SpaceInterface<float>> space_;
  using Hnsw = hnswlib::HierarchicalNSW<float>;
  std::unique_ptr<Hnsw> graph_;     // made with the first vector, which takes some time
  std::deque<VectorPlace> places_;  // by label
  std::atomic<size_t> size_ = 0, capacity_;
  std::atomic<uint64_t> long_key_bytes_ = 0;
  mutable SearchWidth width_;
  mutable std::atomic<size_t> next_part_ = 0;
};

}  // namespace

// No sum of products is above the product of the lengths, nor a squared difference above twice the
// sum of the squared lengths; floats go to 3e38.
bool fits_graph(Similarity similarity, BytesView vector) {
  if (similarity == Similarity::kCosine) return true;  // graphs have them with the length of one
  constexpr double kSquareMax = 1e37;
  return square_of(floats_of(vector)) <= kSquareMax;
}

Result<std::shared_ptr<VectorGraph>> make_vector_graph(Similarity similarity, size_t dimension,
                                                       size_t capacity) {
  try {
    return std::make_shared<HnswGraph>(similarity, dimension, capacity);
  } catch (const std::exception& error) {
    return std::unexpected(failed("making a graph of vectors", error));
  }
}

uint64_t vector_graph_bytes(size_t dimension, size_t capacity) {
  // Vector; links of the lowest level, those above it on the average; label, its place in a table;
  // a lock, level and pointer; the row's place.
  const uint64_t each =
      4 * dimension + (2 * kLinks + 1) * 4 + 12 + 48 + 52 + sizeof(VectorPlace) + kGraphKeyBytes;
  constexpr uint64_t kLocks = 65'536 * sizeof(std::mutex);  // that hnswlib makes for each graph
  return kLocks + each * capacity;
}

}  // namespace tetrad::storage
