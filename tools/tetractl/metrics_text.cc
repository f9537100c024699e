// SPDX-License-Identifier: Apache-2.0
#include "tools/tetractl/metrics_text.h"

#include <algorithm>
#include <cmath>
#include <cstdlib>

namespace tetrad::tools {

namespace {

constexpr std::string_view kBucket = "_bucket";

/// Of the label le; below 0: there is none.
double bound_of(std::string_view labels) {
  const size_t at = labels.find("le=\"");
  return at == std::string_view::npos
             ? -1
             : std::strtod(std::string(labels.substr(at + 4)).c_str(), nullptr);
}

}  // namespace

double ExportedHistogram::at_us(double part) const {
  // The rank of the value that is looked for, from 1.
  const double wanted = std::max(1.0, std::ceil(part * static_cast<double>(count())));
  for (size_t i = 0; i < up_to.size(); ++i) {
    if (static_cast<double>(up_to[i].second) < wanted) continue;
    // The last bucket has no bound of its own: the one before says at least how much.
    const double bound_s =
        std::isinf(up_to[i].first) && i > 0 ? up_to[i - 1].first : up_to[i].first;
    return bound_s * 1e6;
  }
  return 0;
}

MetricsText::MetricsText(std::string_view text) {
  while (!text.empty()) {
    const std::string_view line = text.substr(0, text.find('\n'));
    text.remove_prefix(std::min(line.size() + 1, text.size()));
    const size_t space = line.rfind(' ');
    // Comments have the help and the type, which nobody needs here.
    if (line.empty() || line[0] == '#' || space == std::string_view::npos) continue;
    const size_t brace = line.find('{');
    const std::string_view name = line.substr(0, std::min(brace, space));
    const double value = std::strtod(std::string(line.substr(space + 1)).c_str(), nullptr);
    const double bound =
        brace < space && name.ends_with(kBucket) ? bound_of(line.substr(brace, space - brace)) : -1;
    if (bound >= 0) {
      // Sums of cumulative counts are cumulative, too.
      buckets_[std::string(name.substr(0, name.size() - kBucket.size()))][bound] +=
          static_cast<uint64_t>(value);
      continue;
    }
    Figures& figures = figures_[std::string(name)];
    figures.sum += value;
    figures.not_zero += value != 0 ? 1 : 0;
  }
}

double MetricsText::sum(std::string_view name) const {
  const auto found = figures_.find(name);
  return found == figures_.end() ? 0 : found->second.sum;
}

double MetricsText::not_zero(std::string_view name) const {
  const auto found = figures_.find(name);
  return found == figures_.end() ? 0 : found->second.not_zero;
}

ExportedHistogram MetricsText::histogram(std::string_view name) const {
  ExportedHistogram out;
  const auto found = buckets_.find(name);
  if (found != buckets_.end()) out.up_to.assign(found->second.begin(), found->second.end());
  return out;
}

}  // namespace tetrad::tools
