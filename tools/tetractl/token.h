// SPDX-License-Identifier: Apache-2.0
// The token that a node wants to see with an order.
#pragma once

#include <string>

#include <boost/asio/ip/tcp.hpp>

namespace tetrad::tools {

/// The token to send to the admin port, or why there is none.
struct Token {
  // 64 hexadecimal digits.
  std::string text;     // empty: none
  std::string problem;  // why not
};

/// Of a file that the user named.
/// One of the two members is empty.
Token read_token(const std::string& path);

/// Of the file that a node says it keeps its token in. Only of a node on this machine, and only
/// when the process that listens there belongs to the user that owns the file: another user's
/// program must not get a token by naming the file of somebody else.
Token read_token_named_by(const boost::asio::ip::tcp::endpoint& node, const std::string& path);

}  // namespace tetrad::tools
