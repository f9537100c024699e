// SPDX-License-Identifier: Apache-2.0
// What StopSignals and HeardSignals have in common: a handler notes a signal, and wakes a loop through
// an eventfd.
#pragma once

#include <initializer_list>

namespace tetrad::server {

/// Sets what the process does with these signals; reads and writes of files go on after it.
void handle_signals(std::initializer_list<int> signals, void (*handler)(int));

/// An eventfd for wake_loop(). Throws std::system_error where the process has no descriptor left.
int make_wake_descriptor();

/// For handlers: signal-safety(7) allows write, and errno stays as it was.
void wake_loop(int descriptor);

}  // namespace tetrad::server
