// SPDX-License-Identifier: Apache-2.0
// The requests that a shard is answering at the moment, for system_views.queries.
#pragma once

#include <string>
#include <vector>

#include "base/reactor.h"
#include "cql/protocol/request.h"

namespace tetrad::cql {

/// A request under way, as the table system_views.queries shows it.
struct RunningRequest {
  std::string task;  // its kind and the beginning of its statement, without passwords
  int64_t running_us = 0;
};

/// A list through the entries themselves: being in it costs a request a few stores. Belongs to one
/// shard.
class RunningRequests {
 public:
  /// In the list while it lives, which is in the request's task.
  class Entry {
   public:
    /// All outlive it.
    Entry(RunningRequests& list, const Request& its_request, base::MonotonicUs its_begin_us)
        : request(its_request),
          began_us(its_begin_us),
          list_(list),
          older_(list.newest_),
          newer_(nullptr) {
      if (older_ != nullptr) older_->newer_ = this;
      list_.newest_ = this;
    }
    ~Entry() {
      if (older_ != nullptr) older_->newer_ = newer_;
      (newer_ != nullptr ? newer_->older_ : list_.newest_) = older_;
    }
    // Its neighbours point to it.
    Entry(const Entry&) = delete;
    Entry& operator=(const Entry&) = delete;

    const Request& request;
    const base::MonotonicUs began_us;

   private:
    friend class RunningRequests;
    RunningRequests& list_;
    Entry *older_, *newer_;  // null at the ends of the list
  };

  /// Newest first.
  template <class Visit>
  void for_each(Visit visit) const {
    for (const Entry* at = newest_; at != nullptr; at = at->older_) visit(*at);
  }

 private:
  Entry* newest_ = nullptr;
};

}  // namespace tetrad::cql
