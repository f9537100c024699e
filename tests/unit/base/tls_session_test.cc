// SPDX-License-Identifier: Apache-2.0
#include "base/tls_session.h"

#include <ctime>
#include <fstream>

#include <catch2/catch.hpp>

#include "base/tls_check.h"
#include "tests/support/certificate_folder.h"

namespace tetrad::base {
namespace {

using Role = TlsSession::Role;
constexpr int64_t kDay_s = 86'400;

struct Folder : tests::CertificateFolder {
  Folder() : CertificateFolder({"127.0.0.1,node.example"}, {"alice"}) {}
};

std::shared_ptr<const TlsContext> context(const TlsFiles& files, TlsPeer peer) {
  auto made = TlsContext::load(files, peer);
  INFO((made ? "" : made.error().message));
  REQUIRE(made);
  return *made;
}

std::unique_ptr<TlsSession> session(std::shared_ptr<const TlsContext> of, Role role,
                                    const std::string& host = "") {
  auto made = TlsSession::make(std::move(of), role, host);
  REQUIRE(made);
  return std::move(*made);
}

/// Carries bytes both ways, `piece` at a time, until nothing comes any more. What each has said.
struct Talk {
  Talk(std::unique_ptr<TlsSession> c, std::unique_ptr<TlsSession> s, size_t p = SIZE_MAX)
      : client(std::move(c)), server(std::move(s)), piece(p) {
    step(*client, client_result);
    for (int i = 0; i < 20 && (!client->out().empty() || !server->out().empty()); ++i) {
      carry(*client, *server, server_result);
      carry(*server, *client, client_result);
    }
  }
  static void step(TlsSession& of, Result<bool>& result) {
    if (result && !*result) result = of.handshake();
  }
  void carry(TlsSession& from, TlsSession& to, Result<bool>& result) const {
    const Bytes wire = std::exchange(from.out(), Bytes());
    for (size_t at = 0; at < wire.size(); at += std::min(piece, wire.size() - at)) {
      to.feed(BytesView(wire).substr(at, piece));
      step(to, result);
      if (result && *result && to_read != nullptr) *to_read += all_of(to, result);
    }
  }
  /// What it has to read. An alert that comes after the handshake ends it as one in it would.
  static std::string all_of(TlsSession& of, Result<bool>& result) {
    std::string out;
    char room[100];
    while (true) {
      const auto got = of.read(room, sizeof(room));
      if (!got) result = std::unexpected(got.error());
      if (!got || *got == 0) return out;
      out.append(room, *got);
    }
  }
  std::string said_by_client() const { return client_result ? "" : client_result.error().message; }
  std::string said_by_server() const { return server_result ? "" : server_result.error().message; }
  std::unique_ptr<TlsSession> client, server;
  size_t piece;
  std::string rest;
  std::string* to_read = &rest;
  Result<bool> client_result = false, server_result = false;
};

TEST_CASE("bytes go both ways, however they are cut", "[tls]") {
  const Folder folder;
  const auto node = context(folder.node(), TlsPeer::kUnasked);
  const auto anybody = context({"", "", folder.file("ca.pem")}, TlsPeer::kRequired);
  for (const size_t piece : {size_t{1}, size_t{7}, SIZE_MAX}) {
    for (const char* host : {"127.0.0.1", "node.example", ""}) {
      Talk talk(session(anybody, Role::kClient, host), session(node, Role::kServer), piece);
      REQUIRE(talk.said_by_client() == "");
      REQUIRE((talk.client_result && *talk.client_result));
      REQUIRE((talk.server_result && *talk.server_result));
      CHECK(talk.server->description().starts_with("TLSv1.3"));
      const std::string large(100'000, 'x');
      REQUIRE(talk.client->write("question"));
      REQUIRE(talk.server->write(large));
      std::string at_server, at_client;
      talk.to_read = &at_server;
      talk.carry(*talk.client, *talk.server, talk.server_result);
      talk.to_read = &at_client;
      talk.carry(*talk.server, *talk.client, talk.client_result);
      CHECK(at_server == "question");
      CHECK(at_client == large);
      CHECK_FALSE(talk.client->has_ended());
      talk.server->end();
      talk.carry(*talk.server, *talk.client, talk.client_result);
      CHECK(talk.client->has_ended());
      CHECK(talk.client->peer_names().common_name == "127.0.0.1");
      CHECK(talk.client->peer_names().dns == std::vector<std::string>{"node.example"});
    }
  }
}

TEST_CASE("a session that has failed says so to whoever goes on reading or writing", "[tls]") {
  const Folder folder;
  Talk talk(session(context({"", "", folder.file("ca.pem")}, TlsPeer::kRequired), Role::kClient),
            session(context(folder.node(), TlsPeer::kUnasked), Role::kServer));
  REQUIRE((talk.server_result && *talk.server_result));
  // The head of a record of 32 bytes, and bytes that are none of this session's.
  talk.server->feed(Bytes("\x17\x03\x03\x00\x20", 5) + Bytes(32, 'x'));
  char room[100];
  for (int i = 0; i < 3; ++i) CHECK_FALSE(talk.server->read(room, sizeof(room)).has_value());
  CHECK_FALSE(talk.server->write("more").has_value());
  talk.server->end();
}

TEST_CASE("a certificate of another authority is refused, and both sides know why", "[tls]") {
  const Folder ours, theirs;
  const auto node = context(ours.node(), TlsPeer::kServerRequired);
  SECTION("of a client") {
    auto files = theirs.node();
    files.authority = ours.file("ca.pem");
    Talk talk(session(context(files, TlsPeer::kServerRequired), Role::kClient),
              session(node, Role::kServer));
    CHECK(talk.said_by_server().find("unable to get local issuer certificate (subject "
                                     "CN=127.0.0.1, issuer CN=Tetrad authority") !=
          std::string::npos);
    CHECK(talk.said_by_client() ==
          "the peer refuses our certificate: its authority is unknown there");
  }
  SECTION("of a server") {
    Talk talk(session(context(theirs.node(), TlsPeer::kServerRequired), Role::kClient),
              session(node, Role::kServer));
    CHECK_THAT(talk.said_by_client(), Catch::Contains("unable to get local issuer certificate"));
    CHECK(talk.said_by_server() ==
          "the peer refuses our certificate: its authority is unknown there");
  }
}

TEST_CASE("who must show a certificate", "[tls]") {
  const Folder folder;
  const auto anybody = context({"", "", folder.file("ca.pem")}, TlsPeer::kRequired);
  const auto alice = context(folder.of("alice"), TlsPeer::kRequired);
  const auto talk_of = [&](const auto& client, TlsPeer peer) {
    return Talk(session(client, Role::kClient),
                session(context(folder.node(), peer), Role::kServer));
  };
  CHECK(talk_of(anybody, TlsPeer::kRequired).said_by_server() ==
        "the peer has no certificate, which is demanded here");
  CHECK(talk_of(anybody, TlsPeer::kRequired).said_by_client() ==
        "the peer demands a certificate, and we have none");
  CHECK(talk_of(anybody, TlsPeer::kIfGiven).said_by_server() == "");
  const Talk named = talk_of(alice, TlsPeer::kIfGiven);
  CHECK(named.said_by_server() == "");
  CHECK(named.server->peer_names().common_name == "alice");
  // The same authority has signed it, but not for a node.
  CHECK_THAT(talk_of(alice, TlsPeer::kServerRequired).said_by_server(), Catch::Contains("purpose"));
}

TEST_CASE("a server of another name is refused", "[tls]") {
  const Folder folder;
  const auto node = context(folder.node(), TlsPeer::kUnasked);
  const auto anybody = context({"", "", folder.file("ca.pem")}, TlsPeer::kRequired);
  for (const char* host : {"127.0.0.2", "other.example"}) {
    const Talk talk(session(anybody, Role::kClient, host), session(node, Role::kServer));
    CHECK_THAT(talk.said_by_client(), Catch::Contains("mismatch"));
  }
}

TEST_CASE("an expired certificate is refused, and both sides know why", "[tls]") {
  const Folder folder;
  tools::CertificateOrder order;
  order.directory = folder.path();
  order.nodes = {"127.0.0.2"};
  order.days = 0;  // it holds until now
  REQUIRE(tools::make_certificates(order));
  const auto good = context(folder.node(), TlsPeer::kRequired);
  const auto expired = context(folder.of("127.0.0.2"), TlsPeer::kRequired);
  const Talk of_server(session(good, Role::kClient), session(expired, Role::kServer));
  CHECK_THAT(of_server.said_by_client(), Catch::Contains("certificate has expired (subject CN="));
  CHECK_THAT(of_server.said_by_server(),
             Catch::Contains("refuses our certificate: it has expired"));
  const Talk of_client(session(expired, Role::kClient), session(good, Role::kServer));
  CHECK_THAT(of_client.said_by_server(), Catch::Contains("certificate has expired (subject CN="));
  CHECK_THAT(of_client.said_by_client(),
             Catch::Contains("refuses our certificate: it has expired"));
}

TEST_CASE("what is no TLS, and what is broken off, ends with a sentence", "[tls]") {
  const Folder folder;
  const auto node = context(folder.node(), TlsPeer::kUnasked);
  for (const char* hostile : {"GET / HTTP/1.0\r\n\r\n", "\x05\x00\x00\x00\x05\x00\x00\x00\x00",
                              "\x16\x03\x01\xff\xff\x01\x00\x00\x00"}) {
    const auto server = session(node, Role::kServer);
    server->feed(BytesView(hostile, 9));
    const auto result = server->handshake();
    REQUIRE_FALSE(result);
    CHECK_FALSE(result.error().message.empty());
  }
  // A record with one wrong bit.
  const auto anybody = context({"", "", folder.file("ca.pem")}, TlsPeer::kRequired);
  Talk talk(session(anybody, Role::kClient), session(node, Role::kServer));
  REQUIRE(talk.client->write("question"));
  talk.client->out().back() = static_cast<char>(talk.client->out().back() ^ 1);
  talk.carry(*talk.client, *talk.server, talk.server_result);
  CHECK_THAT(talk.said_by_server(), Catch::Contains("bad record mac"));
  CHECK_FALSE(talk.server->out().empty());  // the alert
}

TEST_CASE("files that do not read are named with what is wrong", "[tls]") {
  const Folder folder, other;
  const auto said = [](const TlsFiles& files) {
    const auto made = TlsContext::load(files, TlsPeer::kRequired);
    return made ? std::string() : made.error().message;
  };
  const TlsFiles good = folder.node();
  CHECK(said(good) == "");
  TlsFiles files = good;
  files.certificate = folder.file("nothing.pem");
  CHECK(said(files) == "cannot read " + files.certificate + ": No such file or directory");
  files = good;
  files.certificate = folder.path();
  CHECK(said(files) == "cannot read " + folder.path() + ": Is a directory");
  files = good;
  files.certificate = files.key;
  CHECK(said(files) == files.key + " holds no certificate in PEM form");
  files = good;
  files.key = files.certificate;
  CHECK(said(files).starts_with(files.key + " holds no private key in PEM form"));
  files = good;
  files.key = other.node().key;
  CHECK(said(files) ==
        "the key in " + files.key + " is not that of the certificate in " + files.certificate);
  files = good;
  files.authority = folder.file("broken.pem");
  std::ofstream(files.authority) << "-----BEGIN CERTIFICATE-----\nAAAA\n"
                                    "-----END CERTIFICATE-----\n";
  CHECK(said(files).starts_with(files.authority + ": a certificate does not read"));
}

TEST_CASE("what peers would say of the own certificate is known before it is used", "[tls]") {
  const Folder folder, other;
  const int64_t now_s = std::time(nullptr);
  const auto said = [](const TlsFiles& files, TlsPeer peer, std::optional<int64_t> at_s) {
    const auto checked = check_own_certificate(*context(files, peer), files, peer, at_s);
    return checked ? std::string() : checked.error().message;
  };
  const TlsFiles good = folder.node();
  const TlsFiles none{"", "", good.authority};
  for (const TlsPeer peer : {TlsPeer::kUnasked, TlsPeer::kRequired, TlsPeer::kServerRequired}) {
    CHECK(said(good, peer, now_s) == "");
    CHECK(said(none, peer, now_s) == "");
    // Dates count where a time is given.
    CHECK_THAT(said(good, peer, now_s + 826 * kDay_s),
               Catch::StartsWith(good.certificate + ": the certificate has expired, on 20"));
    CHECK_THAT(said(good, peer, now_s - 300 * kDay_s),
               Catch::StartsWith(good.certificate + ": the certificate is not valid before 20"));
    CHECK(said(good, peer, std::nullopt) == "");
  }
  // Nodes: as a peer's handshake, at any time. The authority of others is none for the own one.
  TlsFiles mixed = good;
  mixed.authority = other.node().authority;
  for (const std::optional<int64_t> at_s : {std::optional<int64_t>(), std::optional(now_s)}) {
    CHECK_THAT(
        said(mixed, TlsPeer::kServerRequired, at_s),
        Catch::StartsWith(good.certificate + ": the certificate is not signed by an authority in " +
                          mixed.authority + ": other nodes refuse it: ") &&
            Catch::Contains("(subject CN=127.0.0.1, issuer CN=Tetrad authority"));
    CHECK_THAT(said(folder.of("alice"), TlsPeer::kServerRequired, at_s),
               Catch::Contains("unsuitable certificate purpose (subject CN=alice"));
    CHECK(said(mixed, TlsPeer::kRequired, at_s) == "");
  }
  CHECK_THAT(said(folder.of("alice"), TlsPeer::kUnasked, now_s),
             Catch::Contains("the certificate is not one for servers"));
  CHECK(said(folder.of("alice"), TlsPeer::kUnasked, std::nullopt) == "");
  // The authority's own dates, too: it holds ten years.
  tools::CertificateOrder order;
  order.directory = folder.path();
  order.nodes = {"127.0.0.1"};
  order.renew = true;
  order.days = 5'000;
  REQUIRE(tools::make_certificates(order));
  CHECK(said(good, TlsPeer::kUnasked, now_s + 4'000 * kDay_s) == "");
  CHECK_THAT(said(good, TlsPeer::kServerRequired, now_s + 4'000 * kDay_s),
             Catch::Contains("certificate has expired (subject CN=Tetrad authority"));
}

TEST_CASE("files are read again, and what does not read changes nothing", "[tls]") {
  const Folder folder;
  const auto opened = TlsCredentials::open(folder.node(), TlsPeer::kRequired);
  REQUIRE(opened);
  TlsCredentials& credentials = **opened;
  const int64_t now_s = std::time(nullptr);
  const auto first = credentials.current();
  CHECK(credentials.reload(now_s) == false);
  CHECK(credentials.current() == first);
  tools::CertificateOrder order;
  order.directory = folder.path();
  order.nodes = {"127.0.0.1"};
  order.renew = true;
  REQUIRE(tools::make_certificates(order));
  CHECK(credentials.reload(now_s) == true);
  const auto second = credentials.current();
  CHECK(second != first);
  order.days = 10;
  REQUIRE(tools::make_certificates(order));
  CHECK_FALSE(credentials.reload(now_s + 11 * kDay_s));  // it would have expired
  CHECK(credentials.current() == second);
  CHECK(credentials.reload(now_s) == true);
  const auto third = credentials.current();
  std::ofstream(folder.node().certificate) << "nothing\n";
  CHECK_FALSE(credentials.reload(now_s));
  CHECK(credentials.current() == third);
}

}  // namespace
}  // namespace tetrad::base
