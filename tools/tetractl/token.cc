// SPDX-License-Identifier: Apache-2.0
// The token is a file of the node that its user alone may read (server/admin/admin_token.h): who
// can read it may give orders.
#include "tools/tetractl/token.h"

#include <cerrno>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <optional>
#include <sstream>
#include <sys/stat.h>

#include <fmt/format.h>

namespace tetrad::tools {
namespace {

using boost::asio::ip::tcp;

// Of a token; and the state LISTEN in /proc/net/tcp.
constexpr size_t kDigits = 64;
constexpr const char* kListening = "0A";

/// An address as /proc/net/tcp and tcp6 write it: words of four bytes, each as this machine has it
/// in memory.
std::string proc_text(const boost::asio::ip::address& address) {
  // 127.0.0.1 is 0100007F on a little-endian machine.
  const auto words = [](const auto& bytes) {
    std::string out;
    for (size_t i = 0; i < bytes.size(); i += 4) {
      uint32_t word = 0;
      std::memcpy(&word, bytes.data() + i, 4);
      out += fmt::format("{:08X}", word);
    }
    return out;
  };
  return address.is_v4() ? words(address.to_v4().to_bytes()) : words(address.to_v6().to_bytes());
}

/// Who listens there; none: nobody, several users, or it cannot be found out.
/// Both tables have a line for each socket: number, local address, remote address, state, …, user.
std::optional<uid_t> listener_of(const tcp::endpoint& node) {
  std::ifstream table(node.address().is_v4() ? "/proc/net/tcp" : "/proc/net/tcp6");
  const std::string port = fmt::format(":{:04X}", node.port());
  // A socket that listens on all addresses.
  const std::string any(node.address().is_v4() ? 8 : 32, '0');
  std::optional<uid_t> found;
  std::string line;
  while (std::getline(table, line)) {
    std::istringstream fields(line);
    std::string number, local, remote, state, queues, timer, retransmits;
    uid_t user = 0;
    if (!(fields >> number >> local >> remote >> state >> queues >> timer >> retransmits >> user))
      continue;
    if (state != kListening) continue;
    if (local != proc_text(node.address()) + port && local != any + port) continue;
    // Several sockets may listen (SO_REUSEPORT); they must be of one user.
    if (found && *found != user) return std::nullopt;
    found = user;
  }
  return found;
}

/// By errno.
/// The usual reason is that tetractl runs as another user than the node.
std::string cannot_read(const std::string& path) {
  const int why = errno;
  return fmt::format("cannot read the token file {}: {}{}", path, std::strerror(why),
                     why == EACCES ? "; run tetractl as the user of the node, or say --token-file "
                                     "with a copy that you may read"
                                   : "");
}

}  // namespace

Token read_token(const std::string& path) {
  std::ifstream file(path);
  std::string line;
  if (!std::getline(file, line)) return {"", cannot_read(path)};
  if (line.size() != kDigits || line.find_first_not_of("0123456789abcdef") != std::string::npos)
    return {"", fmt::format("{} is no token file", path)};
  return {line, ""};
}

Token read_token_named_by(const tcp::endpoint& node, const std::string& path) {
  if (!node.address().is_loopback())
    return {"", "this node is on another machine: say --token-file with a copy of its admin_token"};
  // Whatever answers on the port could name any file whose first line it would like to be sent.
  if (std::filesystem::path(path).filename() != "admin_token")
    return {"", "it names no token file"};
  struct stat facts {};
  if (::stat(path.c_str(), &facts) != 0) return {"", cannot_read(path)};
  if (listener_of(node) != std::optional<uid_t>(facts.st_uid)) {
    return {"", fmt::format("{} belongs to another user than the node; say --token-file {} if that "
                            "is meant",
                            path, path)};
  }
  return read_token(path);
}

}  // namespace tetrad::tools
