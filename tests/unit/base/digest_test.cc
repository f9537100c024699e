// SPDX-License-Identifier: Apache-2.0
#include "base/digest.h"

#include <catch2/catch.hpp>

namespace tetrad::base {

TEST_CASE("digests have Java's names, in any case") {
  const auto hex = [](BytesView name) { return to_hex(digest_named(name, "abc").value()); };
  CHECK(hex("MD5") == "900150983cd24fb0d6963f7d28e17f72");
  CHECK(hex("sha-1") == "a9993e364706816aba3e25717850c26c9cd0d89d");
  CHECK(hex("SHA-256") == "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad");
  CHECK(hex("SHA3-256") == "3a985da74fe225b2045c172d6bd390bd855f086e3e9d525b46bfe24511431532");
  CHECK(hex("SHA-512").size() == 128);
  CHECK_FALSE(digest_named("SHA-999", "abc"));
  CHECK_FALSE(digest_named("", "abc"));
}

}  // namespace tetrad::base
