// SPDX-License-Identifier: Apache-2.0
// Expected trouble: a code, a sentence and, where an answer carries numbers, a typed detail.
//
// Errors travel as Result<T> (result.h). `code` decides what the caller does, `message` is for
// people and is never parsed, `detail` has what a driver needs as numbers.
#pragma once

#include <array>
#include <cstdint>
#include <memory>
#include <string>
#include <utility>
#include <variant>
#include <vector>

#include "base/consistency_level.h"

namespace tetrad::base {

/// Tetrad's own codes. Wire numbers are known to cql/protocol/error_code.cc alone.
/// A code says what the reader may do: repeat (kOverloaded, kStaleEpoch, kBehind), ask another one
/// (kNotLeader), mend a statement (kInvalid, kSyntax), or tell an operator (kCorruption, kIo).
enum class ErrorCode : uint8_t {
  // Codes that clients see. Each has a number of its own on their wire
  // (cql/protocol/error_code.cc). The numbers below travel between nodes
  // (replication/rpc/envelope.h), so a new code goes to the end and none is ever used for something
  // else.
  kServerError = 0,
  kProtocol,
  kBadCredentials,
  kUnavailable,
  kOverloaded,
  kBootstrapping,
  kTruncate,
  kWriteTimeout,
  kReadTimeout,
  kReadFailure,
  kFunctionFailure,
  kWriteFailure,
  kCasWriteUnknown,
  // A statement that does not parse; kInvalid: one that parses and means nothing here.
  kSyntax,
  kUnauthorized,
  kInvalid,
  kConfig,
  kAlreadyExists,
  kUnprepared,
  // Codes between rooms only; a client gets kServerError for those that reach the session.
  // Bytes of a disk or of another node that do not decode.
  kCorruption,
  kIo,
  kCancelled,
  // A deadline between rooms; a client sees the timeout of its kind of statement.
  kTimedOut,
  kNotFound,
  // Whoever hears one of these four learns what it lacks and repeats the request, or gives it up at
  // its deadline.
  kStaleSchema,  // the sender's table incarnation or schema version is older than ours
  kStaleEpoch,   // the sender's set epoch is older than ours
  kBehind,       // we are older than the sender: retry after catching up
  kConflict,     // a metadata command found another version than it expected
  kNotLeader,
  // A bound of ours is reached: room, memory, a number.
  kLimit,
  kRedate,         // deletions of the write are dated too long ago: the coordinator dates it anew
  kClockOff,       // its server timestamp is further off than clocks may be
  kReplicaBehind,  // a power cut took what we had: we answer no reads until we have fetched it
  kIndexNotBuilt,  // the index that the read names does not have all of our rows yet
};
/// For what counts or checks by code: tables of this many entries, and the bound of a code that
/// another node has sent.
/// Moves with each new code.
inline constexpr ErrorCode kErrorCodeLast = ErrorCode::kIndexNotBuilt;

/// Extras of Unavailable, native protocol v5, section 9 (0x1000).
/// `alive` of the replicas were known to be live, `required` are needed: nothing was sent to any.
struct UnavailableDetail {
  ConsistencyLevel level;
  int32_t required, alive;
};

/// The kind of write that a timeout or failure names; error_code.cc has its name on the wire.
/// The order is that of the names in error_code.cc.
enum class WriteType : uint8_t {
  kSimple,
  kBatch,
  kUnloggedBatch,
  kCounter,
  kBatchLog,
  kCas,
  kView,
  kCdc
};

/// Extras of read and write timeouts (0x1100, 0x1200). `write_type` counts for writes,
/// `data_present` for reads.
/// `received` of `required` replicas answered in time. The write may still take effect.
struct TimeoutDetail {
  ConsistencyLevel level;
  int32_t received, required;
  WriteType write_type = WriteType::kSimple;
  bool data_present = false;
  uint16_t contentions = 0;  // how often others won; of write type CAS
};

/// Extras of read and write failures (0x1300, 0x1500).
/// As TimeoutDetail, but at least one replica has answered with an error, each with its reason code
/// (native protocol v5, section 9).
struct FailureDetail {
  ConsistencyLevel level;
  int32_t received, required;
  std::vector<std::pair<std::string, uint16_t>> failures;  // address text, reason code
  WriteType write_type = WriteType::kSimple;
  bool data_present = false;
};

/// Extras of AlreadyExists (0x2400): what a CREATE met.
/// Not an error of IF NOT EXISTS.
struct AlreadyExistsDetail {
  std::string keyspace, table;  // table is "" for a keyspace
};

/// Extras of Unprepared (0x2500): the statement id that this node does not know.
/// Drivers prepare the statement again and repeat the request.
struct UnpreparedDetail {
  std::string id;
};

/// Extras of FunctionFailure (0x1400): the function that failed, and with which overload.
/// `argument_types` as CQL writes them.
struct FunctionFailureDetail {
  std::string keyspace, name;
  std::vector<std::string> argument_types;
};

/// What a client gets beside code and text; each alternative belongs to one code, and drivers
/// choose their exception and their retry by it.
/// A new alternative needs its extras in cql/protocol/error_reply.cc and, to travel between nodes,
/// in replication/rpc.
using ErrorDetail = std::variant<UnavailableDetail, TimeoutDetail, FailureDetail,
                                 AlreadyExistsDetail, UnpreparedDetail, FunctionFailureDetail>;

/// An error as a value. Cheap to move; the detail is shared and immutable.
/// The detail, if there is one, is the alternative that belongs to the code.
struct Error {
  ErrorCode code = ErrorCode::kServerError;
  std::string message;
  std::shared_ptr<const ErrorDetail> detail;

  Error() = default;
  // fail() in result.h is the usual way to make one.
  Error(ErrorCode c, std::string m) : code(c), message(std::move(m)) {}
  Error(ErrorCode c, std::string m, ErrorDetail d)
      : code(c), message(std::move(m)), detail(std::make_shared<const ErrorDetail>(std::move(d))) {}
};

}  // namespace tetrad::base

namespace tetrad {
using base::Error;
using base::ErrorCode;
}  // namespace tetrad
