// SPDX-License-Identifier: Apache-2.0
// begin() is on the path of each request, so it only reads the clock and copies some bytes;
// everything else happens when a turn was long. The statement that ran longest in the turn is the
// one that the log names.
#include "server/runtime/stall_watch.h"

#include <algorithm>
#include <cstring>

#include "cql/execute/password.h"
#include "server/runtime/asio_reactor.h"

namespace tetrad::server {

void StallWatch::begin(BytesView id, BytesView text) {
  const base::MonotonicUs now_us = monotonic_now_us();
  end_statement(now_us);
  if (first_us_ == 0) first_us_ = now_us;
  now_.began_us = now_us;
  now_.id_size = std::min(id.size(), now_.id.size());
  std::memcpy(now_.id.data(), id.data(), now_.id_size);
  now_.text_size = std::min(text.size(), kTextMax);
  // A fixed array: no allocation, and the request may be gone when the turn ends.
  std::memcpy(now_.text.data(), text.data(), now_.text_size);
}

void StallWatch::end_statement(base::MonotonicUs now_us) {
  if (now_.began_us == 0) return;
  const int64_t lasted_us = now_us - now_.began_us;
  if (lasted_us > kStallUs && lasted_us > longest_us_) {
    longest_us_ = lasted_us;
    longest_ = now_;
  }
  now_.began_us = 0;
}

void StallWatch::turn_ended(base::MonotonicUs began_us, base::MonotonicUs now_us) {
  end_statement(now_us);
  // After a sleep the loop does not know when its first handler began; the first statement does.
  if (first_us_ != 0) began_us = std::min(began_us, first_us_);
  const int64_t lasted_us = now_us - began_us;
  turns_.record(lasted_us);
  first_us_ = 0;
  if (lasted_us <= kStallUs) return;
  // An overloaded node would fill its log with this.
  if (logged_us_ != 0 && now_us - logged_us_ < kLogPeriodUs) {
    ++not_logged_;
  } else if (longest_us_ == 0) {
    logger_.warn("the event loop was held up ms={} unlogged_before={}", lasted_us / 1000,
                 std::exchange(not_logged_, 0));
    logged_us_ = now_us;
  } else {
    logger_.warn(
        "the event loop was held up ms={} statement_ms={} id={} text=\"{}\" "
        "unlogged_before={}",
        lasted_us / 1000, longest_us_ / 1000, base::to_hex({longest_.id.data(), longest_.id_size}),
        // The text is a client's: passwords are cut off, and no byte of it may break the line.
        escaped(cql::up_to_secret({longest_.text.data(), longest_.text_size})),
        std::exchange(not_logged_, 0));
    logged_us_ = now_us;
  }
  longest_us_ = 0;
}

std::string StallWatch::escaped(BytesView text) {
  std::string out;
  for (const char c : text) {
    if (c == '"' || c == '\\') {
      out += '\\';
      out += c;
    } else if (c >= ' ' && c <= '~') {
      out += c;
    } else {
      out += fmt::format("\\x{:02x}", static_cast<uint8_t>(c));
    }
  }
  return out;
}

}  // namespace tetrad::server
