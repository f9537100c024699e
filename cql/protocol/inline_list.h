// SPDX-License-Identifier: Apache-2.0
// A list of small trivial things that lives in the object itself up to N of them, on the heap
// beyond: the bound values of a request cost no allocation in the common case.
#pragma once

#include <algorithm>
#include <cstddef>
#include <memory>
#include <span>
#include <type_traits>
#include <utility>

namespace tetrad::cql {

/// The list. Invariant: the items are in inline_items_ as long as heap_ is null, afterwards all of
/// them are on the heap.
template <class T, size_t N>
class InlineList {
  // Items are copied as bytes and never destroyed.
  static_assert(std::is_trivially_copyable_v<T> && std::is_trivially_destructible_v<T>);

 public:
  InlineList() {}
  InlineList(const InlineList& other) { append(other); }
  InlineList(InlineList&& other) noexcept { take(other); }
  InlineList& operator=(const InlineList& other) {
    if (this != &other) {
      clear();
      append(other);
    }
    return *this;
  }
  InlineList& operator=(InlineList&& other) noexcept {
    if (this != &other) take(other);
    return *this;
  }
  ~InlineList() {}

  size_t size() const { return size_; }
  bool empty() const { return size_ == 0; }
  // Good until the list grows: push_back() and reserve() may move the items.
  const T* data() const { return heap_ ? heap_.get() : inline_items_; }
  T* data() { return heap_ ? heap_.get() : inline_items_; }
  const T& operator[](size_t i) const { return data()[i]; }
  T& operator[](size_t i) { return data()[i]; }
  const T* begin() const { return data(); }
  const T* end() const { return data() + size_; }
  std::span<const T> span() const { return {data(), size_}; }
  operator std::span<const T>() const { return span(); }

  // Keeps the memory on the heap, if there is some, for the next items.
  void clear() { size_ = 0; }
  /// Room for `capacity` in all, or more. The caller has bounded it.
  void reserve(size_t capacity) {
    if (capacity <= capacity_) return;
    capacity = std::max(capacity, 2 * capacity_);
    auto grown = std::make_unique_for_overwrite<T[]>(capacity);
    std::copy_n(data(), size_, grown.get());
    heap_ = std::move(grown);
    capacity_ = capacity;
  }
  void push_back(const T& item) {
    if (size_ == capacity_) {
      // The item may be one of this list, which reserve() frees.
      const T kept = item;
      reserve(capacity_ + 1);
      data()[size_++] = kept;
      return;
    }
    data()[size_++] = item;
  }

 private:
  // Behind what is there. The items themselves need no copy constructor.
  void append(const InlineList& other) {
    reserve(size_ + other.size_);
    std::copy_n(other.data(), other.size_, data() + size_);
    size_ += other.size_;
  }
  void take(InlineList& other) {
    heap_ = std::move(other.heap_);
    capacity_ = other.capacity_;
    size_ = other.size_;
    if (!heap_) std::copy_n(other.inline_items_, size_, inline_items_);
    other.capacity_ = N;
    other.size_ = 0;
  }

  std::unique_ptr<T[]> heap_;
  size_t size_ = 0;
  // N as long as heap_ is null.
  size_t capacity_ = N;
  union {  // members beyond size_ are never read, so none is initialised
    T inline_items_[N];
  };
};

}  // namespace tetrad::cql
