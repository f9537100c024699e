// SPDX-License-Identifier: Apache-2.0
// Each address falls back to another one, as in Cassandra; errors name the option whose text it is,
// so each text travels with its option (Named).
#include "server/config/addresses.h"

#include <boost/asio/ip/address.hpp>
#include <fmt/format.h>

namespace tetrad::server {
namespace {

using boost::asio::ip::address;

/// An option and what it says, or what stands for it.
struct Named {
  const char* option;
  std::string text;
};

Result<address> read(const Named& named) {
  boost::system::error_code error;
  const address out = boost::asio::ip::make_address(named.text, error);
  if (error) return fail(ErrorCode::kConfig, "{}: '{}' is no IP address", named.option, named.text);
  return out;
}

// A wildcard can be listened at and not be reached.
Result<void> check_told(const Named& named, const char* whom, const char* say) {
  TETRAD_TRY(const address told, read(named));
  if (!told.is_unspecified()) return {};
  return fail(ErrorCode::kConfig, "{}: '{}' is no address that {} could be told; say {}",
              named.option, named.text, whom, say);
}

/// What is said, or `otherwise`.
Named said_or(const char* option, const std::string& said, const Named& otherwise) {
  return said.empty() ? otherwise : Named{option, said};
}

// The parts that hold, with commas between.
std::string join(std::initializer_list<std::pair<bool, std::string_view>> parts) {
  std::string out;
  for (const auto& [holds, what] : parts)
    if (holds) out += fmt::format("{}{}", out.empty() ? "" : ", ", what);
  return out;
}

/// What may listen off loopback is protected, or it is said that it need not be.
Result<void> check_exposed(const Options& options, const Named& listen, const Named& rpc) {
  if (options.insecure_listen) return {};
  // Loopback is safe whatever is encrypted: only programs of this machine reach it.
  TETRAD_TRY(const address nodes, read(listen));
  TETRAD_TRY(const address clients, read(rpc));
  const bool nodes_exposed = !nodes.is_loopback(), clients_exposed = !clients.is_loopback();
  const std::string why = join({
      {nodes_exposed && options.internode_encryption != "all",
       options.cluster_secret_file.empty()
           ? "nodes trust whoever reaches their port (internode_encryption)"
           : "what nodes send can be read and changed on the way (internode_encryption)"},
      {clients_exposed && !has_authentication(options), "no client has to log in (authenticator)"},
      {clients_exposed &&
           (!options.client_encryption_enabled || options.client_encryption_optional),
       "what clients send can be read on the way (client_encryption_enabled)"},
  });
  if (why.empty()) return {};
  const Named& exposed = nodes_exposed ? listen : rpc;
  return fail(ErrorCode::kConfig,
              "{}: {} is not on loopback and {}; say --insecure-listen if that is meant",
              exposed.option, exposed.text, why);
}

// Orders are never answered off loopback but by an explicit address.
Result<std::string> admin_address_of(const Options& options, const address& listen) {
  if (options.admin_address.empty())
    return listen.is_loopback() ? options.listen_address : std::string("127.0.0.1");
  TETRAD_TRY(const address admin, read({"admin_address", options.admin_address}));
  if (!admin.is_loopback() && !options.insecure_listen) {
    return fail(
        ErrorCode::kConfig,
        "admin_address: {} is not on loopback: whoever reaches it may ask everything{}; say "
        "--insecure-listen if that is meant",
        options.admin_address,
        options.admin_encryption_enabled ? "" : ", and the token of orders travels in clear");
  }
  return options.admin_address;
}

/// One of the node's own listeners would keep the other from its port, once the cluster is founded.
Result<void> check_ports(const Options& options, const NodeAddresses& addresses) {
  struct Port {
    const char* option;
    uint64_t number;
    const std::string& at;
  };
  const Port ports[] = {{"native_port", options.native_port, addresses.rpc},
                        {"internode_port", options.internode_port, addresses.listen},
                        {"admin_port", options.admin_port, addresses.admin},
                        {"admin_port", options.admin_port, addresses.admin_outside}};
  for (const Port& one : ports) {
    for (const Port& other : ports) {
      if (&other <= &one || one.option == other.option || one.number != other.number ||
          one.at.empty() || other.at.empty())
        continue;
      TETRAD_TRY(const address a, read({one.option, one.at}));
      TETRAD_TRY(const address b, read({other.option, other.at}));
      // A wildcard takes in all others.
      if (a != b && !a.is_unspecified() && !b.is_unspecified()) continue;
      return fail(ErrorCode::kConfig, "{} and {} are both {} on {}: each needs one of its own",
                  one.option, other.option, one.number, a.is_unspecified() ? other.at : one.at);
    }
  }
  return {};
}

}  // namespace

bool has_authentication(const Options& options) {
  return options.authenticator == "PasswordAuthenticator";
}

Result<NodeAddresses> addresses_of(const Options& options) {
  const Named listen{"listen_address", options.listen_address};
  const Named rpc = said_or("rpc_address", options.rpc_address, listen);
  const Named broadcast = said_or("broadcast_address", options.broadcast_address, listen);
  // As in Cassandra: rpc_address is also what clients get where broadcast_rpc_address is not set.
  const Named broadcast_rpc = said_or("broadcast_rpc_address", options.broadcast_rpc_address,
                                      options.rpc_address.empty() ? broadcast : rpc);
  TETRAD_TRY(const address listen_at, read(listen));
  TETRAD_TRY_VOID(check_told(broadcast, "other nodes and drivers",
                             "broadcast_address, or name an address of this machine"));
  TETRAD_TRY_VOID(check_told(broadcast_rpc, "drivers",
                             "broadcast_rpc_address, or name an address of this machine"));
  TETRAD_TRY_VOID(check_exposed(options, listen, rpc));
  NodeAddresses out;
  out.listen = listen.text;
  out.broadcast = broadcast.text;
  out.rpc = rpc.text;
  out.broadcast_rpc = broadcast_rpc.text;
  out.broadcast_native_port = static_cast<uint16_t>(
      options.broadcast_native_port != 0 ? options.broadcast_native_port : options.native_port);
  TETRAD_TRY(out.admin, admin_address_of(options, listen_at));
  // A wildcard takes in all others.
  TETRAD_TRY(const address admin_at, read({"admin_address", out.admin}));
  if (out.admin != out.listen && !admin_at.is_unspecified() && !listen_at.is_unspecified())
    out.admin_outside = out.listen;
  TETRAD_TRY_VOID(check_ports(options, out));
  return out;
}

}  // namespace tetrad::server
