// SPDX-License-Identifier: Apache-2.0
#include "storage/vectors/distance.h"

#include <array>
#include <bit>
#include <cmath>

#include "base/byte_io.h"

namespace tetrad::storage {
namespace {

constexpr size_t kLanes = 4;
/// Partial sums, so that an addition need not wait for the one before it.
using Lanes = std::array<double, kLanes>;

double sum_of(const Lanes& lanes) { return (lanes[0] + lanes[1]) + (lanes[2] + lanes[3]); }

float element_at(BytesView vector, size_t i) {
  return std::bit_cast<float>(base::load_big_endian<uint32_t>(vector.data() + sizeof(float) * i));
}

}  // namespace

std::vector<float> floats_of(BytesView vector) {
  std::vector<float> floats(vector.size() / sizeof(float));
  for (size_t i = 0; i < floats.size(); ++i) floats[i] = element_at(vector, i);
  return floats;
}

VectorFault fault_of(Similarity similarity, BytesView vector) {
  bool is_zero = true;
  for (size_t i = 0; i < vector.size() / sizeof(float); ++i) {
    const float element = element_at(vector, i);
    if (!std::isfinite(element)) return VectorFault::kNotFinite;
    is_zero = is_zero && element == 0;
  }
  return is_zero && similarity == Similarity::kCosine ? VectorFault::kZero : VectorFault::kNone;
}

QueryVector::QueryVector(Similarity similarity, BytesView vector)
    : similarity_(similarity), elements_(floats_of(vector)) {}

std::optional<double> QueryVector::distance_of(BytesView vector) const {
  const size_t n = elements_.size();
  if (vector.size() != n * sizeof(float)) return std::nullopt;
  Lanes sums{}, lengths{};
  if (similarity_ == Similarity::kEuclidean) {
    for (size_t i = 0; i < n; ++i) {
      const double difference = static_cast<double>(elements_[i]) - element_at(vector, i);
      sums[i % kLanes] += difference * difference;
    }
    const double distance = sum_of(sums);
    return std::isfinite(distance) ? std::optional(distance) : std::nullopt;
  }
  for (size_t i = 0; i < n; ++i) {
    const double element = element_at(vector, i);
    sums[i % kLanes] += static_cast<double>(elements_[i]) * element;
    lengths[i % kLanes] += element * element;
  }
  double distance = -sum_of(sums);
  if (similarity_ == Similarity::kCosine) distance /= std::sqrt(sum_of(lengths));
  return std::isfinite(distance) ? std::optional(distance) : std::nullopt;
}

}  // namespace tetrad::storage
