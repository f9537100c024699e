// SPDX-License-Identifier: Apache-2.0
#include "cql/schema/partition_key_text.h"

#include "cql/schema/schema_snapshot.h"
#include "tests/unit/cql/good_schema.h"

namespace tetrad::tests {
namespace {

/// Tables with keys of one column and of two.
class Keys : public GoodSchema {
 public:
  Keys() {
    run("CREATE TABLE texts (k text PRIMARY KEY)");
    run("CREATE TABLE pairs (a text, b int, PRIMARY KEY ((a, b)))");
  }
  Result<Bytes> key(const std::string& table, std::string_view text) const {
    const auto schema = cql::SchemaSnapshot::build(*meta.snapshot(), nullptr, {});
    return cql::partition_key_of_text(*schema->table("ks", table), text);
  }
};

const Bytes kPair("\0\3a:b\0\0\4\0\0\0\7\0", 13);

}  // namespace

TEST_CASE_METHOD(Keys, "a partition key of text is what a statement makes of its values") {
  CHECK(key("good", "-5") == Bytes("\xFF\xFF\xFF\xFB"));
  CHECK(key("texts", "a:b") == Bytes("a:b"));
  CHECK(key("pairs", "a\\:b:7") == kPair);
}

TEST_CASE_METHOD(Keys, "a text that is no partition key is refused with what is wrong") {
  CHECK(key("good", "x").error().message == "Unable to make int from 'x'");
  CHECK(key("pairs", "a").error().message.find("has 2 columns, 'a' has 1 values") != Bytes::npos);
  CHECK_FALSE(key("pairs", "a:1:2"));
  CHECK_FALSE(key("pairs", ""));
  CHECK_FALSE(key("texts", std::string(70'000, 'x')));
}

}  // namespace tetrad::tests
