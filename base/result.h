// SPDX-License-Identifier: Apache-2.0
// Result<T>: a value or an Error. TETRAD_TRY unwraps it or returns its error to the caller.
//
//   Result<Row> read(BytesView bytes) {
//     TETRAD_TRY(const uint32_t size, read_size(bytes));     // returns the error, if there is one
//     if (size > kMax) return fail(ErrorCode::kCorruption, "{} bytes, at most {}", size, kMax);
//     …
//   }
#pragma once

#include <expected>
#include <utility>

#include <fmt/format.h>

#include "base/error.h"

namespace tetrad::base {

/// To be looked at before its value is used: the value of an error does not exist.
template <class T>
using Result = std::expected<T, Error>;

/// Makes the error side of a Result: `return fail(ErrorCode::kInvalid, "{} of {}", a, b);`
template <class... Args>
[[nodiscard]] std::unexpected<Error> fail(ErrorCode code, fmt::format_string<Args...> text,
                                          Args&&... args) {
  return std::unexpected<Error>(Error(code, fmt::format(text, std::forward<Args>(args)...)));
}

/// As fail(), for a text that is no format string.
/// Needed where the text comes from a client or another node: braces in it must not be read as a
/// format.
[[nodiscard]] inline std::unexpected<Error> fail_text(ErrorCode code, std::string text) {
  return std::unexpected<Error>(Error(code, std::move(text)));
}

}  // namespace tetrad::base

namespace tetrad {
using base::fail;
using base::fail_text;
using base::Result;
}  // namespace tetrad

// Two steps, so that __COUNTER__ becomes a number before it is joined to the name.
#define TETRAD_CONCAT_INNER(a, b) a##b
#define TETRAD_CONCAT(a, b) TETRAD_CONCAT_INNER(a, b)

// TETRAD_TRY(const auto x, f());  declares x from the value of f(), or returns its error.
#define TETRAD_TRY_IMPL(tmp, ret, decl, ...)                      \
  auto tmp = __VA_ARGS__;                                         \
  if (!tmp) [[unlikely]]                                          \
    ret std::unexpected<::tetrad::Error>(std::move(tmp).error()); \
  decl = std::move(*tmp)
#define TETRAD_TRY(decl, ...) \
  TETRAD_TRY_IMPL(TETRAD_CONCAT(try_, __COUNTER__), return, decl, __VA_ARGS__)

// TETRAD_TRY_VOID(f());  for a Result<void>, or to drop a value.
#define TETRAD_TRY_VOID(...)                                                 \
  do {                                                                       \
    if (auto try_void_ = __VA_ARGS__; !try_void_) [[unlikely]]               \
      return std::unexpected<::tetrad::Error>(std::move(try_void_).error()); \
  } while (false)

// The same inside a coroutine. The expression must not contain co_await (g++ 12): await into a
// named local first.
#define TETRAD_CO_TRY(decl, ...) \
  TETRAD_TRY_IMPL(TETRAD_CONCAT(try_, __COUNTER__), co_return, decl, __VA_ARGS__)
#define TETRAD_CO_TRY_VOID(...)                                                 \
  do {                                                                          \
    if (auto try_void_ = __VA_ARGS__; !try_void_) [[unlikely]]                  \
      co_return std::unexpected<::tetrad::Error>(std::move(try_void_).error()); \
  } while (false)
