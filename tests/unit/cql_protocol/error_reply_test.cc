// SPDX-License-Identifier: Apache-2.0
#include <catch2/catch.hpp>

#include "cql/protocol/error_code.h"
#include "cql/protocol/response.h"
#include "tests/unit/cql_protocol/wire.h"

using namespace tetrad;
using namespace tetrad::cql;
using base::WriteType;

namespace {

client::ErrorReply round_trip(int version, const Error& error) {
  Bytes out;
  append_error(out, {.version = version, .stream = 9}, error);
  return reply_of<client::ErrorReply>(out);
}

template <class Detail>
Detail detail_of(const client::ErrorReply& reply) {
  return std::get<Detail>(*reply.error.detail);
}

}  // namespace

TEST_CASE("codes without extras have their numbers in every version") {
  const std::pair<ErrorCode, uint32_t> codes[] = {
      {ErrorCode::kServerError, 0x0000},    {ErrorCode::kProtocol, 0x000A},
      {ErrorCode::kBadCredentials, 0x0100}, {ErrorCode::kOverloaded, 0x1001},
      {ErrorCode::kBootstrapping, 0x1002},  {ErrorCode::kTruncate, 0x1003},
      {ErrorCode::kSyntax, 0x2000},         {ErrorCode::kUnauthorized, 0x2100},
      {ErrorCode::kInvalid, 0x2200},        {ErrorCode::kConfig, 0x2300},
      {ErrorCode::kCorruption, 0x0000},     {ErrorCode::kStaleEpoch, 0x0000},
      {ErrorCode::kTimedOut, 0x0000}};
  for (const int version : {3, 4, 5}) {
    for (const auto& [code, wire] : codes) {
      const auto reply = round_trip(version, Error(code, "why"));
      CHECK(reply.wire_code == wire);
      CHECK(reply.error.message == "why");
    }
  }
}

TEST_CASE("extras are read back") {
  for (const int version : {4, 5}) {
    const auto unavailable =
        round_trip(version, Error(ErrorCode::kUnavailable, "u",
                                  base::UnavailableDetail{ConsistencyLevel::kQuorum, 2, 1}));
    CHECK(unavailable.wire_code == 0x1000);
    CHECK(detail_of<base::UnavailableDetail>(unavailable).required == 2);
    CHECK(detail_of<base::UnavailableDetail>(unavailable).alive == 1);

    const auto write = round_trip(
        version, Error(ErrorCode::kWriteTimeout, "w",
                       base::TimeoutDetail{ConsistencyLevel::kAll, 1, 3, WriteType::kBatchLog}));
    CHECK(write.wire_code == 0x1100);
    CHECK(detail_of<base::TimeoutDetail>(write).write_type == WriteType::kBatchLog);

    const auto cas = round_trip(
        version, Error(ErrorCode::kWriteTimeout, "w",
                       base::TimeoutDetail{ConsistencyLevel::kSerial, 1, 3, WriteType::kCas}));
    CHECK(detail_of<base::TimeoutDetail>(cas).write_type == WriteType::kCas);
    base::TimeoutDetail contended{ConsistencyLevel::kSerial, 1, 3, WriteType::kCas};
    contended.contentions = 7;
    const auto lost = round_trip(version, Error(ErrorCode::kWriteTimeout, "w", contended));
    CHECK(detail_of<base::TimeoutDetail>(lost).contentions == (version >= 5 ? 7 : 0));

    base::TimeoutDetail read{ConsistencyLevel::kOne, 0, 1};
    read.data_present = true;
    const auto timeout = round_trip(version, Error(ErrorCode::kReadTimeout, "r", read));
    CHECK(timeout.wire_code == 0x1200);
    CHECK(detail_of<base::TimeoutDetail>(timeout).data_present);

    base::FailureDetail failure{ConsistencyLevel::kTwo, 1, 2, {{"10.0.0.1", 1}, {"::2", 0}}};
    failure.write_type = WriteType::kCounter;
    const auto failed = round_trip(version, Error(ErrorCode::kWriteFailure, "f", failure));
    CHECK(failed.wire_code == 0x1500);
    CHECK(detail_of<base::FailureDetail>(failed).write_type == WriteType::kCounter);
    if (version == 5) CHECK(detail_of<base::FailureDetail>(failed).failures == failure.failures);
    const auto read_failed = round_trip(version, Error(ErrorCode::kReadFailure, "f", failure));
    CHECK(read_failed.wire_code == 0x1300);

    const auto function = round_trip(
        version,
        Error(ErrorCode::kFunctionFailure, "x", base::FunctionFailureDetail{"ks", "f", {"int"}}));
    CHECK(function.wire_code == 0x1400);
    CHECK(detail_of<base::FunctionFailureDetail>(function).argument_types.size() == 1);

    const auto exists = round_trip(
        version, Error(ErrorCode::kAlreadyExists, "a", base::AlreadyExistsDetail{"ks", "t"}));
    CHECK(exists.wire_code == 0x2400);
    CHECK(detail_of<base::AlreadyExistsDetail>(exists).table == "t");

    const auto unprepared =
        round_trip(version, Error(ErrorCode::kUnprepared, "p", base::UnpreparedDetail{"0123"}));
    CHECK(unprepared.wire_code == 0x2500);
    CHECK(detail_of<base::UnpreparedDetail>(unprepared).id == "0123");
  }
}

TEST_CASE("older versions are told the nearest that they know") {
  const base::FailureDetail failure{ConsistencyLevel::kTwo, 1, 2, {{"10.0.0.1", 1}}};
  CHECK(round_trip(3, Error(ErrorCode::kReadFailure, "f", failure)).wire_code == 0x1200);
  const auto write = round_trip(3, Error(ErrorCode::kWriteFailure, "f", failure));
  CHECK(write.wire_code == 0x1100);
  CHECK(detail_of<base::TimeoutDetail>(write).required == 2);
  CHECK(round_trip(3, Error(ErrorCode::kFunctionFailure, "f")).wire_code == 0x2200);

  const Error unknown(ErrorCode::kCasWriteUnknown, "c",
                      base::TimeoutDetail{ConsistencyLevel::kSerial, 1, 2});
  CHECK(round_trip(5, unknown).wire_code == 0x1700);
  for (const int version : {3, 4}) {
    const auto reply = round_trip(version, unknown);
    CHECK(reply.wire_code == 0x1100);
    CHECK(detail_of<base::TimeoutDetail>(reply).write_type == WriteType::kCas);
    CHECK(detail_of<base::TimeoutDetail>(reply).received == 1);
  }
}

TEST_CASE("an error without its detail can still be read") {
  for (const int version : {3, 4, 5})
    for (int code = 0; code <= static_cast<int>(ErrorCode::kLimit); ++code)
      CHECK_NOTHROW(round_trip(version, Error(static_cast<ErrorCode>(code), "bare")));
}

TEST_CASE("messages are cut between characters and made readable") {
  std::string longer(65534, 'a');
  longer += "éé";
  CHECK(round_trip(4, Error(ErrorCode::kInvalid, longer)).error.message == std::string(65534, 'a'));
  CHECK(round_trip(4, Error(ErrorCode::kInvalid, "caf\xc3")).error.message == "caf?");
  CHECK(round_trip(4, Error(ErrorCode::kInvalid, "café")).error.message == "café");
}
