// SPDX-License-Identifier: Apache-2.0
#include "cql/execute/prepared_texts.h"

#include <algorithm>

namespace tetrad::cql {

void PreparedTexts::put(BytesView id, Entry entry) {
  auto kept = std::make_shared<const Entry>(std::move(entry));
  const std::lock_guard lock(mutex_);
  const auto [found, is_new] = by_id_.try_emplace(Bytes(id));
  if (is_new) {
    by_use_.emplace_front();
    by_use_.front().id = Bytes(id);
    found->second = by_use_.begin();
  } else {
    bytes_ -= found->second->bytes();
    by_use_.splice(by_use_.begin(), by_use_, found->second);
  }
  found->second->entry = std::move(kept);
  bytes_ += found->second->bytes();
  // The newest text stays even where it alone is over the limit of bytes.
  while (by_use_.size() > 1 && (by_use_.size() > count_max_ || bytes_ > bytes_max_)) {
    bytes_ -= by_use_.back().bytes();
    by_id_.erase(by_use_.back().id);
    by_use_.pop_back();
  }
}

std::optional<PreparedTexts::Entry> PreparedTexts::find(BytesView id) {
  const std::lock_guard lock(mutex_);
  const auto found = by_id_.find(Bytes(id));
  if (found == by_id_.end()) return std::nullopt;
  by_use_.splice(by_use_.begin(), by_use_, found->second);
  return *found->second->entry;
}

std::vector<std::pair<Bytes, std::shared_ptr<const PreparedTexts::Entry>>> PreparedTexts::list(
    size_t count_max) {
  std::vector<std::pair<Bytes, std::shared_ptr<const Entry>>> out;
  const std::lock_guard lock(mutex_);
  out.reserve(std::min(count_max, by_use_.size()));
  for (const Kept& kept : by_use_) {
    if (out.size() == count_max) break;
    out.emplace_back(kept.id, kept.entry);
  }
  return out;
}

size_t PreparedTexts::count() {
  const std::lock_guard lock(mutex_);
  return by_id_.size();
}

}  // namespace tetrad::cql
