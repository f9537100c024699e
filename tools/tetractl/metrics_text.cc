// SPDX-License-Identifier: Apache-2.0
#include "tools/tetractl/metrics_text.h"

#include <algorithm>
#include <cmath>
#include <cstdlib>

#include <fmt/format.h>

namespace tetrad::tools {

namespace {

constexpr std::string_view kBucket = "_bucket";

/// `labels` from the brace on. Empty: there is no such label.
std::string label_of(std::string_view labels, std::string_view name) {
  const std::string begin = fmt::format("{}=\"", name);
  for (size_t at = labels.find(begin); at != std::string_view::npos;
       at = labels.find(begin, at + 1)) {
    if (at == 0 || (labels[at - 1] != '{' && labels[at - 1] != ',')) continue;
    labels.remove_prefix(at + begin.size());
    return std::string(labels.substr(0, labels.find('"')));
  }
  return {};
}

/// Below 0: there is none.
double bound_of(std::string_view labels) {
  const std::string bound = label_of(labels, "le");
  return bound.empty() ? -1 : std::strtod(bound.c_str(), nullptr);
}

std::string of_level(std::string_view name, std::string_view level) {
  return level.empty() ? std::string(name) : fmt::format("{} {}", name, level);
}

}  // namespace

ExportedHistogram ExportedHistogram::with(const ExportedHistogram& other) const {
  if (up_to.empty()) return other;
  ExportedHistogram out = *this;
  // The node's histograms have the same bounds.
  for (size_t i = 0; i < std::min(up_to.size(), other.up_to.size()); ++i)
    out.up_to[i].second += other.up_to[i].second;
  return out;
}

ExportedHistogram ExportedHistogram::without(const ExportedHistogram& part) const {
  ExportedHistogram out = *this;
  for (size_t i = 0; i < std::min(up_to.size(), part.up_to.size()); ++i)
    out.up_to[i].second -= std::min(out.up_to[i].second, part.up_to[i].second);
  return out;
}

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
    const std::string_view labels =
        brace < space && name.ends_with(kBucket) ? line.substr(brace, space - brace) : "";
    const double bound = bound_of(labels);
    if (bound >= 0) {
      // Sums of cumulative counts are cumulative, too.
      const std::string_view base = name.substr(0, name.size() - kBucket.size());
      const auto count = static_cast<uint64_t>(value);
      buckets_[std::string(base)][bound] += count;
      if (const std::string level = label_of(labels, "level"); !level.empty())
        buckets_[of_level(base, level)][bound] += count;
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

ExportedHistogram MetricsText::histogram(std::string_view name, std::string_view level) const {
  ExportedHistogram out;
  const auto found = buckets_.find(of_level(name, level));
  if (found != buckets_.end()) out.up_to.assign(found->second.begin(), found->second.end());
  return out;
}

}  // namespace tetrad::tools
