// SPDX-License-Identifier: Apache-2.0
// What RocksDB throws while it writes is an error of the disk: nobody knows what it has written.
#pragma once

#include <rocksdb/status.h>

#include "base/guarded.h"

namespace tetrad::storage {

/// What `work` answers, a Status; an I/O error that names `job` when it throws.
template <class Work>
rocksdb::Status guarded_status(std::string_view job, Work&& work) {
  const Result<rocksdb::Status> status =
      base::guarded(job, [&]() -> Result<rocksdb::Status> { return work(); });
  return status ? *status : rocksdb::Status::IOError(status.error().message);
}

}  // namespace tetrad::storage
