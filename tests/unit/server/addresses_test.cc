// SPDX-License-Identifier: Apache-2.0
// Where a node listens and what it says of that, from what the options say.
#include "server/config/addresses.h"

#include <catch2/catch.hpp>

namespace tetrad::server {
namespace {

NodeAddresses read(const Options& options) {
  const auto addresses = addresses_of(options);
  REQUIRE(addresses);
  return *addresses;
}

std::string refusal(const Options& options) {
  const auto addresses = addresses_of(options);
  return addresses ? "" : addresses.error().message;
}

TEST_CASE("without a word all addresses are the one that is listened at") {
  Options options;
  options.listen_address = "127.0.0.7";
  const NodeAddresses addresses = read(options);
  CHECK(addresses.listen == "127.0.0.7");
  CHECK(addresses.broadcast == "127.0.0.7");
  CHECK(addresses.rpc == "127.0.0.7");
  CHECK(addresses.broadcast_rpc == "127.0.0.7");
  CHECK(addresses.broadcast_native_port == 9042);
  CHECK(addresses.admin == "127.0.0.7");
  CHECK(addresses.admin_outside.empty());
}

TEST_CASE("what is said for one stands for those that follow from it") {
  Options options;
  options.broadcast_address = "192.0.2.1";
  CHECK(read(options).broadcast_rpc == "192.0.2.1");
  CHECK(read(options).rpc == "127.0.0.1");
  options.rpc_address = "127.0.0.9";
  CHECK(read(options).broadcast_rpc == "127.0.0.9");
  options.broadcast_rpc_address = "192.0.2.2";
  options.broadcast_native_port = 19042;
  CHECK(read(options).broadcast_rpc == "192.0.2.2");
  CHECK(read(options).rpc == "127.0.0.9");
  CHECK(read(options).broadcast_native_port == 19042);
}

TEST_CASE("a wildcard may be listened at, and needs what others are told") {
  Options options;
  options.insecure_listen = true;
  options.listen_address = "0.0.0.0";
  CHECK(refusal(options).starts_with("listen_address: '0.0.0.0' is no address that other nodes"));
  options.broadcast_rpc_address = "192.0.2.2";
  CHECK(refusal(options).starts_with("listen_address: '0.0.0.0' is no address that other nodes"));
  options.broadcast_address = "192.0.2.1";
  CHECK(read(options).listen == "0.0.0.0");
  CHECK(read(options).admin == "127.0.0.1");
  CHECK(read(options).admin_outside.empty());  // its port is that of the wildcard
  options.broadcast_rpc_address.clear();
  options.rpc_address = "::";
  CHECK(refusal(options).starts_with("rpc_address: '::' is no address that drivers could be told"));
  options.broadcast_address = "::";
  CHECK(refusal(options).starts_with("broadcast_address: '::' is no address"));
}

TEST_CASE("off loopback each port is protected or meant to be open") {
  Options options;
  options.listen_address = "192.0.2.1";
  CHECK(refusal(options) ==
        "listen_address: 192.0.2.1 is not on loopback and nodes trust whoever reaches their port "
        "(internode_encryption), no client has to log in (authenticator), what clients send can be "
        "read on the way (client_encryption_enabled); say --insecure-listen if that is meant");
  options.rpc_address = "127.0.0.1";
  CHECK(refusal(options) ==
        "listen_address: 192.0.2.1 is not on loopback and nodes trust whoever reaches their port "
        "(internode_encryption); say --insecure-listen if that is meant");
  options.cluster_secret_file = "/etc/tetrad/cluster-secret";
  CHECK(refusal(options) ==
        "listen_address: 192.0.2.1 is not on loopback and what nodes send can be read and changed "
        "on the way (internode_encryption); say --insecure-listen if that is meant");
  options.cluster_secret_file.clear();
  options.internode_encryption = "all";
  CHECK(read(options).admin == "127.0.0.1");
  CHECK(read(options).admin_outside == "192.0.2.1");
  options.listen_address = "127.0.0.1";
  options.internode_encryption = "none";
  options.rpc_address = "192.0.2.1";
  CHECK(
      refusal(options).starts_with("rpc_address: 192.0.2.1 is not on loopback and no client has"));
  options.authenticator = "PasswordAuthenticator";
  options.client_encryption_enabled = true;
  CHECK(read(options).rpc == "192.0.2.1");
  options.admin_address = "192.0.2.1";
  CHECK(refusal(options).starts_with("admin_address: 192.0.2.1 is not on loopback"));
}

TEST_CASE("two listeners of a node need two ports where their addresses meet") {
  Options options;
  options.native_port = 7000;
  CHECK(refusal(options) ==
        "native_port and internode_port are both 7000 on 127.0.0.1: each needs one of its own");
  options.rpc_address = "127.0.0.2";
  CHECK(refusal(options).empty());
  options.listen_address = "0.0.0.0";
  options.broadcast_address = "127.0.0.1";
  options.insecure_listen = true;
  CHECK(refusal(options) ==
        "native_port and internode_port are both 7000 on 127.0.0.2: each needs one of its own");
  Options admin;
  admin.admin_port = 9042;
  CHECK(refusal(admin).starts_with("native_port and admin_port are both 9042 on 127.0.0.1"));
  admin.admin_port = 7000;
  CHECK(refusal(admin).starts_with("internode_port and admin_port are both 7000 on 127.0.0.1"));
  // Beside admin_address the admin port answers some questions at listen_address.
  admin.admin_address = "127.0.0.5";
  CHECK(refusal(admin).starts_with("internode_port and admin_port are both 7000 on 127.0.0.1"));
  Options broadcast;
  broadcast.broadcast_native_port = 7000;  // nobody listens there
  CHECK(refusal(broadcast).empty());
}

}  // namespace
}  // namespace tetrad::server
