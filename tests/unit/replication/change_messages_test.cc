// SPDX-License-Identifier: Apache-2.0
#include "replication/changes/change_messages.h"

#include <catch2/catch.hpp>

#include "base/random.h"

namespace tetrad::replication {
namespace {

Change row(std::string partition_key, std::string clustering_key) {
  return {{-5, 7}, std::move(partition_key), Bytes(std::move(clustering_key))};
}

StoreAddress store_number(uint8_t host, uint32_t store) {
  StoreAddress address;
  address.host.value.octets[15] = host;
  address.store = store;
  return address;
}

/// Every beginning of it, and itself with one byte more, are refused.
template <class Decode>
void check_cuts(const Bytes& whole, Decode decode, ErrorCode code) {
  for (size_t size = 0; size < whole.size(); ++size) {
    const auto decoded = decode(BytesView(whole).substr(0, size));
    INFO("cut at " << size);
    REQUIRE(!decoded);
    CHECK(decoded.error().code == code);
  }
  CHECK(!decode(whole + 'x'));
}

/// Any bytes decode or are refused; nothing crashes or takes memory for what is not there.
template <class Decode>
void check_damage(const Bytes& whole, Decode decode) {
  base::Random random(7);
  for (int i = 0; i < 20'000; ++i) {
    Bytes damaged = whole;
    for (uint64_t n = 1 + random.below(3); n > 0; --n)
      damaged[random.below(damaged.size())] = static_cast<char>(random.below(256));
    (void)decode(damaged);
  }
}

}  // namespace

TEST_CASE("entries of a change log say what they were made of, in the order of their sequences") {
  for (const Change& change : {row("pk", "ck"), row("", ""), row("pk", std::string(70'000, '\xFF')),
                               Change{{1, 2}, Bytes("pk"), std::nullopt}}) {
    Bytes entry;
    std::optional<BytesView> key;
    if (change.clustering_key) key = *change.clustering_key;
    append_log_entry(entry, 77, change.position, change.partition_key, key);
    const auto decoded = decode_log_entry(entry);
    REQUIRE(decoded);
    CHECK(decoded->sequence == 77);
    CHECK(decoded->change == change);
  }
  Bytes first, second;
  append_log_entry(first, 0xFF, {5, 5}, "zz", "zz");
  append_log_entry(second, 0x100, {-5, 5}, "a", std::nullopt);
  CHECK(first < second);
  for (size_t size = 0; size < second.size(); ++size)
    CHECK(!decode_log_entry(BytesView(second).substr(0, size)));
  CHECK(!decode_log_entry(second + 'x'));  // static columns have no key
  second[0] = '\xFF';
  CHECK(!decode_log_entry(second));
  check_damage(first, decode_log_entry);
}

TEST_CASE("a page of a change log can be asked for") {
  ChangesRequest request;
  request.table = {4};
  request.log = {3};
  request.layout = 9000;
  request.after = 1'700'000'000'000'000;
  request.changes_max = 500;
  request.bytes_max = 1 << 20;
  for (const bool of_partition : {false, true}) {
    if (of_partition) request.partition.emplace(RingPosition{-3, 8}, Bytes("pk"));
    const Bytes encoded = encode_changes_request(request);
    const auto decoded = decode_changes_request(encoded);
    REQUIRE(decoded);
    CHECK(encode_changes_request(*decoded) == encoded);
    CHECK(decoded->after == request.after);
    CHECK(decoded->partition.has_value() == of_partition);
    check_cuts(encoded, decode_changes_request, ErrorCode::kCorruption);
    check_damage(encoded, decode_changes_request);
  }
  request.changes_max = 0;
  CHECK(!decode_changes_request(encode_changes_request(request)));
}

TEST_CASE("an answer holds changes by sequence") {
  ChangesAnswer answer;
  answer.exhausted = false;
  answer.changes = {
      {10, row("a", "b")}, {11, {{1, 1}, Bytes("a"), std::nullopt}}, {900, row("", "")}};
  answer.scanned = 950;
  answer.end = 5;
  answer.reach = 3;
  const Bytes encoded = encode_changes_answer(answer);
  const auto decoded = decode_changes_answer(encoded);
  REQUIRE(decoded);
  CHECK(decoded->changes == answer.changes);
  CHECK(encode_changes_answer(*decoded) == encoded);
  check_cuts(encoded, decode_changes_answer, ErrorCode::kCorruption);
  check_damage(encoded, decode_changes_answer);
  std::swap(answer.changes[0], answer.changes[1]);
  CHECK(!decode_changes_answer(encode_changes_answer(answer)));
  std::swap(answer.changes[0], answer.changes[1]);
  answer.scanned = 899;
  CHECK(!decode_changes_answer(encode_changes_answer(answer)));
}

TEST_CASE("places in a change feed come back as they were, and nothing else is taken for them") {
  ChangePlaces places{{4}, {3}, -17, {}};
  places.places[store_number(1, 0)] = 5;
  places.places[store_number(1, 1)] = 1'700'000'000'000'000;
  places.places[store_number(2, 300)] = 0;
  const Bytes encoded = encode_change_places(places);
  CHECK(encoded.size() <= 12 + 30 * places.places.size());
  const auto decoded = decode_change_places(encoded);
  REQUIRE(decoded);
  CHECK(decoded->places == places.places);
  CHECK(decoded->since_us == -17);
  CHECK(encode_change_places(*decoded) == encoded);
  check_cuts(encoded, decode_change_places, ErrorCode::kInvalid);
  check_damage(encoded, decode_change_places);
  CHECK(!decode_change_places(""));
  // A count that lies.
  Bytes lies = encoded.substr(0, 9) + "\x21\xFF\xFF\xFF\xFF\xFF\xFF\xFF\x7F";
  CHECK(decode_change_places(lies).error().code == ErrorCode::kInvalid);
}

}  // namespace tetrad::replication
