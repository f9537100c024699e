// SPDX-License-Identifier: Apache-2.0
// The only file that knows the numbers of errors on the wire (native protocol v5, section 9).
#include "cql/protocol/error_code.h"

#include <array>
#include <utility>

namespace tetrad::cql {
namespace {

// Codes that are not in it are between rooms; a client that meets one sees a server error.
constexpr std::pair<ErrorCode, uint32_t> kCodes[] = {
    {ErrorCode::kServerError, 0x0000},     {ErrorCode::kProtocol, 0x000A},
    {ErrorCode::kBadCredentials, 0x0100},  {ErrorCode::kUnavailable, 0x1000},
    {ErrorCode::kOverloaded, 0x1001},      {ErrorCode::kBootstrapping, 0x1002},
    {ErrorCode::kTruncate, 0x1003},        {ErrorCode::kWriteTimeout, 0x1100},
    {ErrorCode::kReadTimeout, 0x1200},     {ErrorCode::kReadFailure, 0x1300},
    {ErrorCode::kFunctionFailure, 0x1400}, {ErrorCode::kWriteFailure, 0x1500},
    {ErrorCode::kCasWriteUnknown, 0x1700}, {ErrorCode::kSyntax, 0x2000},
    {ErrorCode::kUnauthorized, 0x2100},    {ErrorCode::kInvalid, 0x2200},
    {ErrorCode::kConfig, 0x2300},          {ErrorCode::kAlreadyExists, 0x2400},
    {ErrorCode::kUnprepared, 0x2500},
};

// By WriteType.
constexpr std::string_view kWriteTypes[] = {"SIMPLE",    "BATCH", "UNLOGGED_BATCH", "COUNTER",
                                            "BATCH_LOG", "CAS",   "VIEW",           "CDC"};

}  // namespace

uint32_t wire_error_code(ErrorCode code) {
  for (const auto& [ours, wire] : kCodes)
    if (ours == code) return wire;
  return 0x0000;
}

std::optional<ErrorCode> error_code_of_wire(uint32_t wire) {
  for (const auto& [ours, number] : kCodes)
    if (number == wire) return ours;
  return std::nullopt;
}

// Older versions lack codes; each is replaced by the one whose meaning to a driver's retry policy
// is nearest, as Cassandra does.
ErrorCode downgrade_error_code(ErrorCode code, int version) {
  if (code == ErrorCode::kCasWriteUnknown && version < 5) return ErrorCode::kWriteTimeout;
  if (version >= 4) return code;
  switch (code) {
    case ErrorCode::kReadFailure:
      return ErrorCode::kReadTimeout;
    case ErrorCode::kWriteFailure:
      return ErrorCode::kWriteTimeout;
    case ErrorCode::kFunctionFailure:
      return ErrorCode::kInvalid;
    default:
      return code;
  }
}

std::string_view name_of(base::WriteType type) { return kWriteTypes[static_cast<size_t>(type)]; }

std::optional<base::WriteType> parse_write_type(std::string_view name) {
  for (size_t i = 0; i < std::size(kWriteTypes); ++i)
    if (kWriteTypes[i] == name) return static_cast<base::WriteType>(i);
  return std::nullopt;
}

}  // namespace tetrad::cql
