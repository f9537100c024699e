// SPDX-License-Identifier: Apache-2.0
// Statements from the choices of an input: of a small grammar, or given ones with other words.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

namespace tetrad::tests {

/// One byte for each choice; 0 when there are none left, so that every way ends.
class Choices {
 public:
  Choices(const uint8_t* data, size_t size) : data_(data), size_(size) {}
  size_t below(size_t count) { return at_ < size_ ? data_[at_++] % count : 0; }
  template <size_t n>
  std::string of(const std::string_view (&list)[n]) {
    return std::string(list[below(n)]);
  }
  bool one_in(size_t n) { return at_ < size_ && below(n) == 1; }
  bool at_end() const { return at_ >= size_; }

 private:
  const uint8_t* data_;
  size_t size_, at_ = 0;
};

/// Of a small grammar; most name columns and tables that there are, many mean nothing.
std::string random_statement(Choices& c);
/// The statement with some of its words replaced, taken out or doubled.
std::string edited(std::string_view text, Choices& c);

}  // namespace tetrad::tests
