// SPDX-License-Identifier: Apache-2.0
// Secrets: files that only their owner may read, memory that is wiped, comparison whose time tells
// nothing.
#pragma once

#include <string>

#include "base/bytes.h"
#include "base/result.h"

namespace tetrad::base {

/// Wiped when it goes.
struct SecretText {
  SecretText() = default;
  ~SecretText();
  SecretText(const SecretText&) = delete;
  SecretText& operator=(const SecretText&) = delete;
  Bytes text;
};

/// Reads all of a file into `out`; blocks. `what`: what it should hold, for messages. Errors:
/// kConfig with the path and the reason, never with what is in the file: it does not read, is no
/// file, somebody but its owner may read or write it, or it has more than `bytes_max`.
Result<void> read_secret_file(const std::string& path, size_t bytes_max, const char* what,
                              SecretText& out);

/// Takes the same time wherever they differ; not when their sizes do.
bool is_same_secret(BytesView a, BytesView b);

}  // namespace tetrad::base
