// SPDX-License-Identifier: Apache-2.0
// Secrets: files that only their owner and the process may read, memory that is wiped, comparison
// whose time does not depend on where they differ.
#pragma once

#include <span>
#include <string>
#include <sys/types.h>

#include "base/bytes.h"
#include "base/result.h"

namespace tetrad::base {

/// Wiped when it goes.
/// Not copied and not moved, so that there is one place to wipe.
struct SecretText {
  SecretText() = default;
  ~SecretText();
  SecretText(const SecretText&) = delete;
  SecretText& operator=(const SecretText&) = delete;
  Bytes text;
};

/// Whether a file of this mode and group may hold a secret of a process with these groups: its owner
/// alone has rights on it, or the members of one of the groups may read it, too. The latter is how
/// Kubernetes mounts a secret where the pod has an `fsGroup`.
bool is_mode_of_secret(mode_t mode, gid_t group, std::span<const gid_t> own_groups);

/// Reads all of a file into `out`; blocks. `what`: what it should hold, for messages. Errors:
/// kConfig with the path and the reason, never with what is in the file: it does not read, is no
/// file, is_mode_of_secret() is false, or it has more than `bytes_max`.
Result<void> read_secret_file(const std::string& path, size_t bytes_max, const char* what,
                              SecretText& out);

/// Takes the same time wherever they differ; not when their sizes do.
/// For MACs, tokens and secrets that a peer sends: a comparison that stops early would tell how
/// much of a guess is right.
bool is_same_secret(BytesView a, BytesView b);

}  // namespace tetrad::base
