// SPDX-License-Identifier: Apache-2.0
// Addresses by the C library: numbers only, no look-up of names, so nothing here blocks.
#include "cql/protocol/inet.h"

#include <arpa/inet.h>

namespace tetrad::cql {

std::optional<Inet> Inet::parse(std::string_view address, int32_t port) {
  if (address.size() >= 2 && address.front() == '[' && address.back() == ']')
    address = address.substr(1, address.size() - 2);
  const std::string text(address);
  // inet_pton() would stop at it and take what is in front.
  if (text.find('\0') != std::string::npos) return std::nullopt;
  Inet inet;
  inet.port = port;
  if (inet_pton(AF_INET, text.c_str(), inet.octets.data()) == 1) return inet;
  inet.size = 16;
  if (inet_pton(AF_INET6, text.c_str(), inet.octets.data()) == 1) return inet;
  return std::nullopt;
}

// The shortest form that the C library has: "::1".
std::string Inet::address_text() const {
  char text[INET6_ADDRSTRLEN] = "";
  inet_ntop(size == 4 ? AF_INET : AF_INET6, octets.data(), text, sizeof(text));
  return text;
}

}  // namespace tetrad::cql
