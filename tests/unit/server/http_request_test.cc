// SPDX-License-Identifier: Apache-2.0
// Addresses of requests to the admin port.
#include "server/admin/http_request.h"

#include <catch2/catch.hpp>

namespace tetrad::server {

TEST_CASE("an address is read with its parameters") {
  const auto request = read_http_request("GET", "/a%20b?keyspace=k%C3%A4&table=x+y&empty=&");
  REQUIRE(request);
  CHECK(request->method == "GET");
  CHECK(request->path == "/a b");
  CHECK(request->parameter("keyspace") == "k\xC3\xA4");
  CHECK(request->parameter("table") == "x y");
  CHECK(request->query.contains("empty"));
  CHECK(request->parameter("absent").empty());
  CHECK(read_http_request("GET", "/")->path == "/");
  CHECK(read_http_request("GET", "/?")->query.empty());
}

TEST_CASE("an address that is none is refused") {
  for (const char* target : {"",
                             "x",
                             "*",
                             "http://a/b",
                             "/%",
                             "/%4",
                             "/%GG",
                             "/% 1",
                             "/%+1",
                             "/%FF",
                             "/%C0%80",
                             "/%ED%A0%80",
                             "/%F5%80%80%80",
                             "/%F0%80%80%80",
                             "/%E0%80%80",
                             "/%C3",
                             "/\xFF",
                             "/%00",
                             "/%0A",
                             "/%7F",
                             "/a?b",
                             "/a?b=1&b=2",
                             "/a?b=%FF",
                             "/a?%FF=1"}) {
    CAPTURE(target);
    const auto request = read_http_request("GET", target);
    REQUIRE_FALSE(request);
    CHECK(request.error().code == ErrorCode::kInvalid);
    CHECK(is_strict_utf8(request.error().message));
  }
}

TEST_CASE("names that no web page can point at this machine") {
  for (const char* local : {"", "localhost", "localhost:9180", "127.0.0.1", "127.0.0.1:9180",
                            "172.30.42.11", "[::1]", "[::1]:9180", "[fe80::1]"})
    CHECK(names_local_host(local));
  for (const char* other :
       {"example.com", "example.com:9180", "localhost.example.com", "1.2.3", "::1", "[127.0.0.1]",
        "[::1", "127.0.0.1:x", "127.0.0.1.nip.io", " ", "[::1]x", "127.0.0.1 "})
    CHECK_FALSE(names_local_host(other));
}

TEST_CASE("UTF-8 as RFC 3629 has it") {
  for (const char* good : {"", "a", "\x7F", "\xC2\x80", "\xDF\xBF", "\xE0\xA0\x80", "\xED\x9F\xBF",
                           "\xEE\x80\x80", "\xF0\x90\x80\x80", "\xF4\x8F\xBF\xBF"})
    CHECK(is_strict_utf8(good));
  for (const char* bad :
       {"\x80", "\xC0\x80", "\xC1\xBF", "\xC2", "\xE0\x9F\xBF", "\xED\xA0\x80", "\xF0\x8F\xBF\xBF",
        "\xF4\x90\x80\x80", "\xF8\x88\x80\x80\x80", "a\xE2\x82"})
    CHECK_FALSE(is_strict_utf8(bad));
}

}  // namespace tetrad::server
