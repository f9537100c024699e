// SPDX-License-Identifier: Apache-2.0
// However the network cuts a stream, the same envelopes come out.
#include <catch2/catch.hpp>

#include "base/random.h"
#include "tests/unit/cql_protocol/wire.h"

using namespace tetrad;
using namespace tetrad::cql;

namespace {

struct Setting {
  int version;
  Compression compression;
};
constexpr Setting kSettings[] = {
    {3, Compression::kNone}, {3, Compression::kLz4}, {3, Compression::kSnappy},
    {4, Compression::kNone}, {4, Compression::kLz4}, {4, Compression::kSnappy},
    {5, Compression::kNone}, {5, Compression::kLz4},
};

struct Stream {
  Bytes wire;
  std::vector<Bytes> bodies;
};

/// Envelopes of very different sizes, in a few turns.
Stream make_stream(const Setting& setting, const std::vector<size_t>& sizes, base::Random& random) {
  Stream stream;
  FrameEncoder encoder;
  encoder.start(setting.version, setting.compression);
  Bytes wire;
  int16_t id = 0;
  for (const size_t size : sizes) {
    Bytes body(size, '\0');
    const bool compressible = random.one_in(2);
    for (char& c : body) c = static_cast<char>(compressible ? random.below(3) : random.next());
    encoder.out() += envelope(static_cast<uint8_t>(setting.version), 0, id++, Opcode::kQuery, body);
    stream.bodies.push_back(std::move(body));
    if (random.one_in(3)) {
      encoder.finish_turn(wire);
      stream.wire += wire;
    }
  }
  encoder.finish_turn(wire);
  stream.wire += wire;
  return stream;
}

/// Feeds parts of the sizes that `next_size` gives; keeps every envelope to the end.
template <class NextSize>
void check(const Setting& setting, const Stream& stream, NextSize next_size) {
  auto decoder = server_decoder(setting.version, setting.compression);
  std::vector<Envelope> envelopes;
  for (BytesView rest = stream.wire; !rest.empty();) {
    const size_t part = std::min<size_t>(next_size(), rest.size());
    decoder.feed(rest.substr(0, part));
    rest.remove_prefix(part);
    for (auto& incoming : drain(decoder)) {
      REQUIRE(incoming.kind == Kind::kEnvelope);
      envelopes.push_back(std::move(incoming.envelope));
    }
  }
  REQUIRE(envelopes.size() == stream.bodies.size());
  for (size_t i = 0; i < envelopes.size(); ++i) {
    REQUIRE(envelopes[i].stream() == static_cast<int16_t>(i));
    REQUIRE(envelopes[i].body == stream.bodies[i]);
  }
}

}  // namespace

TEST_CASE("a stream fed byte by byte gives the same envelopes") {
  base::Random random(21);
  for (const Setting& setting : kSettings) {
    const Stream stream = make_stream(setting, {0, 1, 63, 64, 65, 300, 0, 2000, 9000, 5}, random);
    check(setting, stream, [] { return size_t{1}; });
  }
}

TEST_CASE("every single split point of a stream gives the same envelopes") {
  base::Random random(22);
  for (const Setting& setting : kSettings) {
    const Stream stream = make_stream(setting, {0, 10, 100, 0, 200, 70}, random);
    for (size_t cut = 1; cut < stream.wire.size(); ++cut) {
      bool first = true;
      check(setting, stream, [&] { return std::exchange(first, false) ? cut : SIZE_MAX; });
    }
  }
}

TEST_CASE("random splits of large and small messages give the same envelopes") {
  base::Random random(23);
  for (int round = 0; round < 6; ++round) {
    for (const Setting& setting : kSettings) {
      std::vector<size_t> sizes;
      for (int i = 0; i < 30; ++i)
        sizes.push_back(random.one_in(8) ? random.below(400000) : random.below(500));
      const Stream stream = make_stream(setting, sizes, random);
      check(setting, stream,
            [&] { return 1 + (random.one_in(2) ? random.below(60) : random.below(100000)); });
    }
  }
}
