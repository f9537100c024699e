// SPDX-License-Identifier: Apache-2.0
// One request is one connection, made and closed: a command asks a few things and ends. Blocking
// calls of Boost.Beast.
#include "tools/tetractl/admin_client.h"

#include <cstdio>
#include <utility>

#include <boost/asio/connect.hpp>
#include <boost/asio/io_context.hpp>
#include <boost/asio/ip/tcp.hpp>
#include <boost/asio/ssl/host_name_verification.hpp>
#include <boost/beast/core.hpp>
#include <boost/beast/http.hpp>
#include <boost/beast/ssl.hpp>
#include <fmt/format.h>
#include <openssl/x509_vfy.h>

#include "tools/tetractl/certificates.h"
#include "tools/tetractl/token.h"

namespace tetrad::tools {
namespace {

namespace asio = boost::asio;
namespace beast = boost::beast;
namespace http = boost::beast::http;
using nlohmann::json;

// /partitions of a large cluster is the longest answer.
constexpr uint64_t kAnswerBytesMax = uint64_t{256} << 20;
constexpr uint16_t kPortOfCassandra = 7199;  // JMX, which nodetool speaks

// Whatever came back over HTTP, before its status means anything.
struct Answer {
  unsigned status = 0;
  std::string body;
};

// RFC 3986: all but unreserved characters as %XX.
std::string url_encoded(const std::string& text) {
  std::string out;
  for (const char c : text) {
    const bool plain = (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') ||
                       c == '-' || c == '_' || c == '.';
    out += plain ? std::string(1, c) : fmt::format("%{:02X}", static_cast<uint8_t>(c));
  }
  return out;
}

// "/path?a=1&b=2", without parameters that have no value.
std::string path_with(const std::string& path, const Parameters& parameters) {
  std::string out = path;
  for (const auto& [name, value] : parameters) {
    if (!value.empty())
      out += (out.size() == path.size() ? "?" : "&") + name + "=" + url_encoded(value);
  }
  return out;
}

/// Over a stream that is connected to `node`.
/// HTTP/1.1 with a Host header, by which the server refuses names of web pages.
template <class Stream>
Answer exchange(Stream& stream, http::verb verb, const std::string& path, const std::string& token,
                const asio::ip::tcp::endpoint& node) {
  const std::string address = node.address().to_string();
  http::request<http::empty_body> request(verb, path, 11);
  request.set(http::field::host, node.address().is_v6() ? "[" + address + "]" : address);
  if (!token.empty()) request.set("X-Tetrad-Token", token);
  request.prepare_payload();
  http::write(stream, request);
  beast::flat_buffer buffer;
  http::response_parser<http::string_body> parser;
  parser.body_limit(kAnswerBytesMax);
  http::read(stream, buffer, parser);
  return {parser.get().result_int(), parser.get().body()};
}

/// What is wrong with a certificate, and what to do; the sentence goes on "HOST:PORT ".
/// The causes are those that an operator makes; all others are in OpenSSL's words.
std::string trouble_with(X509* certificate, int error, const Target& target) {
  switch (error) {
    case X509_V_OK:
      return fmt::format(
          "has a certificate that is not good for {}, but for: {}; say one of these as the host, "
          "or "
          "make it anew with all its names (tetractl certificates --renew)",
          target.host, fmt::join(names_of(certificate), ", "));
    case X509_V_ERR_CERT_HAS_EXPIRED:
      return "has a certificate that has expired, or the clock of this machine is wrong; tetractl "
             "certificates --renew makes it anew";
    case X509_V_ERR_CERT_NOT_YET_VALID:
      return "has a certificate that is not valid yet: the clock of this machine, or of that where "
             "it was made, is wrong";
    case X509_V_ERR_UNABLE_TO_GET_ISSUER_CERT:
    case X509_V_ERR_UNABLE_TO_GET_ISSUER_CERT_LOCALLY:
    case X509_V_ERR_UNABLE_TO_VERIFY_LEAF_SIGNATURE:
    case X509_V_ERR_DEPTH_ZERO_SELF_SIGNED_CERT:
    case X509_V_ERR_SELF_SIGNED_CERT_IN_CHAIN:
    case X509_V_ERR_CERT_SIGNATURE_FAILURE:
      return fmt::format(
          "has a certificate of an authority that is not in {}; name the ca.pem of those who made "
          "it "
          "(--ca-file)",
          target.ca_file);
    default:
      return fmt::format("has a certificate that is not taken: {}",
                         X509_verify_cert_error_string(error));
  }
}

/// One request, with a token when it is an order. Throws boost::system::system_error when the node
/// does not answer, or is not who it should be. `node`: who answered.
Answer ask_once(const Target& target, http::verb verb, const std::string& path,
                const std::string& token, asio::ip::tcp::endpoint& node) {
  asio::io_context io;
  asio::ip::tcp::resolver resolver(io);
  const auto connect = [&](beast::tcp_stream& stream) {
    // Orders such as compact answer when they are done.
    stream.expires_after(std::chrono::minutes(10));
    stream.connect(resolver.resolve(target.host, std::to_string(target.port)));
    node = stream.socket().remote_endpoint();
  };
  if (target.ca_file.empty()) {
    beast::tcp_stream stream(io);
    connect(stream);
    return exchange(stream, verb, path, token, node);
  }
  asio::ssl::context context(asio::ssl::context::tls_client);
  boost::system::error_code error;
  context.load_verify_file(target.ca_file, error);
  if (error) {
    throw NodeError(
        fmt::format("cannot read certificates from {}: {}", target.ca_file, error.message()));
  }
  beast::ssl_stream<beast::tcp_stream> stream(io, context);
  stream.set_verify_mode(asio::ssl::verify_peer);
  // The certificate must name the host as the user has written it.
  std::string trouble;
  const asio::ssl::host_name_verification is_good_for(target.host);
  stream.set_verify_callback([&](bool is_trusted, asio::ssl::verify_context& seen) {
    const bool is_good = is_good_for(is_trusted, seen);
    if (!is_good) {
      X509_STORE_CTX* const context_of = seen.native_handle();
      trouble = trouble_with(X509_STORE_CTX_get_current_cert(context_of),
                             is_trusted ? X509_V_OK : X509_STORE_CTX_get_error(context_of), target);
    }
    return is_good;
  });
  connect(beast::get_lowest_layer(stream));
  stream.handshake(asio::ssl::stream_base::client, error);
  if (!trouble.empty()) throw NodeAway(fmt::format("{}:{} {}", target.host, target.port, trouble));
  if (error) throw boost::system::system_error(error);
  return exchange(stream, verb, path, token, node);
}

std::string token_or_error(const Token& token) {
  if (token.text.empty()) throw NodeError(token.problem);
  return token.text;
}

/// A node of this machine says where its token is; the others' must be named.
Answer order_once(const Target& target, const std::string& path) {
  asio::ip::tcp::endpoint node;
  std::string token;
  if (!target.token_file.empty()) token = token_or_error(read_token(target.token_file));
  // Without a token the node answers 401 and does nothing.
  Answer answer = ask_once(target, http::verb::post, path, token, node);
  if (answer.status != 401) return answer;
  // A token that was named is not replaced by another one: it may be for another node.
  if (!token.empty()) throw NodeError(target.token_file + " is not the token of this node");
  const json named = json::parse(answer.body);
  token = token_or_error(read_token_named_by(node, named.at("token_file")));
  return ask_once(target, http::verb::post, path, token, node);
}

/// What `ask` answers, if it is what was asked for.
/// Throws NodeError for an answer that is not 200, with the node's sentence; NodeAway where none
/// came.
template <class Ask>
std::string body_of(const Target& target, Ask ask) {
  try {
    Answer answer = ask();
    if (answer.status == 200) return std::move(answer.body);
    throw NodeError(json::parse(answer.body).value("error", answer.body));
  } catch (const boost::system::system_error& e) {
    std::string why =
        fmt::format("{}:{} does not answer: {}", target.host, target.port, e.code().message());
    // An end without an answer may also be one of a node that ends.
    // Errors of Beast's HTTP parser: something answers there, and it is no HTTP.
    const auto& of_http = http::make_error_code(http::error::bad_version).category();
    if (e.code().category() == of_http && e.code() != http::error::end_of_stream)
      why = fmt::format(
          "{}:{} is no admin port: it does not speak HTTP; a node's is {} unless "
          "its admin_port says otherwise",
          target.host, target.port, kAdminPort);
    if (target.port == kPortOfCassandra)
      why += fmt::format(
          "; {} is where Cassandra listens for nodetool, a node of Tetrad listens on {}",
          kPortOfCassandra, kAdminPort);
    throw NodeAway(why);
  } catch (const json::exception& e) {
    throw NodeError(fmt::format("{}:{} answers what is no answer of a Tetrad node: {}", target.host,
                                target.port, e.what()));
  }
}

// What has answered 200 without JSON is some other server.
json parsed(const Target& target, const std::string& body) {
  try {
    return json::parse(body);
  } catch (const json::exception& e) {
    throw NodeError(fmt::format("{}:{} answers what is no answer of a Tetrad node: {}", target.host,
                                target.port, e.what()));
  }
}

}  // namespace

// Nobody else is asked instead: only where no program listens there, Cassandra or a node whose
// admin_port it is.
void AdminClient::settle_port() {
  if (std::exchange(is_settled_, true) || target_.port != kPortOfCassandra) return;
  asio::io_context io;
  asio::ip::tcp::resolver resolver(io);
  asio::ip::tcp::socket socket(io);
  boost::system::error_code error;
  const auto found = resolver.resolve(target_.host, std::to_string(target_.port), error);
  if (error) return;  // the request says so
  asio::connect(socket, found, error);
  if (error != asio::error::connection_refused) return;
  fmt::print(stderr, "tetractl: nothing listens at {}:{}, the port of nodetool: {} is asked\n",
             target_.host, kPortOfCassandra, kAdminPort);
  target_.port = kAdminPort;
}

std::string AdminClient::text(const std::string& path) {
  settle_port();
  return body_of(target_, [&] {
    asio::ip::tcp::endpoint node;
    return ask_once(target_, http::verb::get, path, "", node);
  });
}

json AdminClient::fact(const std::string& path, const Parameters& parameters) {
  return parsed(target_, text(path_with(path, parameters)));
}

json AdminClient::order(const std::string& path, const Parameters& parameters) {
  settle_port();
  return parsed(target_,
                body_of(target_, [&] { return order_once(target_, path_with(path, parameters)); }));
}

}  // namespace tetrad::tools
