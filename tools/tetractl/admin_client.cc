// SPDX-License-Identifier: Apache-2.0
// One request is one connection, made and closed: a command asks a few things and ends. Each step is
// begun and waited for, since calls of Boost.Beast that block know no time limit.
#include "tools/tetractl/admin_client.h"

#include <cstdio>
#include <functional>
#include <utility>

#include <boost/asio/io_context.hpp>
#include <boost/asio/ip/tcp.hpp>
#include <boost/asio/ssl/host_name_verification.hpp>
#include <boost/beast/core.hpp>
#include <boost/beast/http.hpp>
#include <boost/beast/ssl.hpp>
#include <fmt/format.h>
#include <openssl/err.h>
#include <openssl/sslerr.h>
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

std::string place_text(const Target& target) {
  return fmt::format("{}:{}", target.host, target.port);
}

/// The steps of one request, each begun on `io` and waited for.
class Steps {
 public:
  /// What happens when a step takes longer than the time limit: it throws, or waits on.
  using Late = std::function<void()>;
  explicit Steps(const Target& target) : target_(target) {}

  asio::io_context& io() { return io_; }
  /// `begin` gets the handler of an operation. Throws boost::system::system_error if that fails.
  template <class Begin>
  void run(Begin begin, const Late& late) {
    bool is_done = false;
    boost::system::error_code error;
    begin([&](boost::system::error_code its_error, const auto&...) {
      error = its_error;
      is_done = true;
    });
    while (true) {
      io_.restart();
      const auto until = std::chrono::steady_clock::now() + target_.time_limit;
      while (!is_done && io_.run_one_until(until) != 0) {
      }
      if (is_done) break;
      late();
    }
    if (error) throw boost::system::system_error(error);
  }
  template <class Begin>
  void run(Begin begin) {
    run(std::move(begin), [this] { throw NodeSilent(silence()); });
  }
  std::string silence() const {
    return fmt::format("{} does not answer within {} s (--timeout)", place_text(target_),
                       target_.time_limit.count());
  }

 private:
  const Target& target_;
  asio::io_context io_;
};

/// Over a stream that is connected to `node`.
/// HTTP/1.1 with a Host header, by which the server refuses names of web pages.
template <class Stream>
Answer exchange(Steps& steps, Stream& stream, http::verb verb, const std::string& path,
                const std::string& token, const asio::ip::tcp::endpoint& node,
                const Steps::Late& late) {
  const std::string address = node.address().to_string();
  http::request<http::empty_body> request(verb, path, 11);
  request.set(http::field::host, node.address().is_v6() ? "[" + address + "]" : address);
  if (!token.empty()) request.set("X-Tetrad-Token", token);
  request.prepare_payload();
  steps.run([&](auto done) { http::async_write(stream, request, std::move(done)); });
  beast::flat_buffer buffer;
  http::response_parser<http::string_body> parser;
  parser.body_limit(kAnswerBytesMax);
  steps.run([&](auto done) { http::async_read(stream, buffer, parser, std::move(done)); }, late);
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

/// OpenSSL's word for an answer that begins like nothing of TLS, as that of a plain server.
bool speaks_no_tls(const boost::system::error_code& error) {
  return error.category() == asio::error::get_ssl_category() &&
         ERR_GET_REASON(static_cast<unsigned long>(error.value())) == SSL_R_WRONG_VERSION_NUMBER;
}

Answer ask_once(const Target& target, http::verb verb, const std::string& path,
                const std::string& token, asio::ip::tcp::endpoint& node);

/// Orders such as compact answer when they are done. Meanwhile a node that hangs does not go
/// unnoticed.
void look_whether_alive(const Target& target, const Steps& steps) {
  try {
    asio::ip::tcp::endpoint node;
    ask_once(target, http::verb::get, "/health", "", node);
  } catch (const NodeSilent&) {
    throw NodeSilent(steps.silence() +
                     ", to /health neither; what was ordered may be under way there");
  }
}

/// One request, with a token when it is an order. Throws boost::system::system_error when the node
/// does not answer, or is not who it should be; NodeSilent. `node`: who answered.
Answer ask_once(const Target& target, http::verb verb, const std::string& path,
                const std::string& token, asio::ip::tcp::endpoint& node) {
  Steps steps(target);
  asio::ip::tcp::resolver resolver(steps.io());
  const auto found = resolver.resolve(target.host, std::to_string(target.port));
  const auto connect = [&](beast::tcp_stream& stream) {
    steps.run([&](auto done) { stream.async_connect(found, std::move(done)); });
    node = stream.socket().remote_endpoint();
  };
  const Steps::Late late = [&] {
    if (verb == http::verb::get) throw NodeSilent(steps.silence());
    look_whether_alive(target, steps);
  };
  if (target.ca_file.empty()) {
    beast::tcp_stream stream(steps.io());
    connect(stream);
    return exchange(steps, stream, verb, path, token, node, late);
  }
  asio::ssl::context context(asio::ssl::context::tls_client);
  boost::system::error_code error;
  context.load_verify_file(target.ca_file, error);
  if (error) {
    throw NodeError(
        fmt::format("cannot read certificates from {}: {}", target.ca_file, error.message()));
  }
  beast::ssl_stream<beast::tcp_stream> stream(steps.io(), context);
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
  try {
    steps.run([&](auto done) {
      stream.async_handshake(asio::ssl::stream_base::client, std::move(done));
    });
  } catch (const boost::system::system_error& failure) {
    if (speaks_no_tls(failure.code()))
      throw NodeAway(
          fmt::format("{} answers without TLS, as an admin port that takes HTTP only: leave out "
                      "--ca-file (TETRAD_CA_FILE), or set "
                      "admin_encryption_enabled there",
                      place_text(target)));
    if (trouble.empty()) throw;
    throw NodeAway(fmt::format("{} {}", place_text(target), trouble));
  }
  return exchange(steps, stream, verb, path, token, node, late);
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
  const json named = json::parse(answer.body, nullptr, false);
  const auto file = named.is_object() ? named.find("token_file") : named.end();
  if (file == named.end() || !file->is_string()) return answer;  // of no node
  token = token_or_error(read_token_named_by(node, file->get<std::string>()));
  return ask_once(target, http::verb::post, path, token, node);
}

/// Of what answers there, and is no node: `how` it answers.
NodeError no_node(const Target& target, const std::string& how) {
  return NodeError(
      fmt::format("no Tetrad answers at {}: {}; a node's admin port is {} unless its "
                  "admin_port says otherwise",
                  place_text(target), how, kAdminPort));
}

// The text of the JSON library says where in the answer, which helps nobody.
json parsed(const Target& target, const Answer& answer) {
  json out = json::parse(answer.body, nullptr, false);
  if (out.is_discarded())
    throw no_node(target, fmt::format("the answer is no JSON (HTTP status {})", answer.status));
  return out;
}

/// What `ask` answers, if it is what was asked for.
/// Throws NodeError for an answer that is not 200, with the node's sentence; NodeAway where none
/// came.
template <class Ask>
Answer answer_of(const Target& target, Ask ask) {
  try {
    Answer answer = ask();
    if (answer.status == 200) return answer;
    const json refusal = parsed(target, answer);
    const auto error = refusal.is_object() ? refusal.find("error") : refusal.end();
    if (error == refusal.end() || !error->is_string())
      throw no_node(target,
                    fmt::format("the answer is HTTP status {}, without a reason", answer.status));
    throw NodeError(error->get<std::string>());
  } catch (const boost::system::system_error& e) {
    std::string why = fmt::format("{} does not answer: {}", place_text(target), e.code().message());
    // An end without an answer may also be one of a node that ends.
    // Errors of Beast's HTTP parser: something answers there, and it is no HTTP.
    const auto& of_http = http::make_error_code(http::error::bad_version).category();
    if (e.code().category() == of_http && e.code() != http::error::end_of_stream)
      why = fmt::format(
          "{} is no admin port: it does not speak HTTP; a node's is {} unless "
          "its admin_port says otherwise",
          place_text(target), kAdminPort);
    if (target.port == kPortOfCassandra)
      why += fmt::format(
          "; {} is where Cassandra listens for nodetool, a node of Tetrad listens on {}",
          kPortOfCassandra, kAdminPort);
    throw NodeAway(why);
  }
}

}  // namespace

// Nobody else is asked instead: only where no program listens there, Cassandra or a node whose
// admin_port it is.
void AdminClient::settle_port() {
  if (std::exchange(is_settled_, true) || target_.port != kPortOfCassandra) return;
  try {
    asio::ip::tcp::endpoint node;
    Steps steps(target_);
    asio::ip::tcp::resolver resolver(steps.io());
    const auto found = resolver.resolve(target_.host, std::to_string(target_.port));
    beast::tcp_stream stream(steps.io());
    steps.run([&](auto done) { stream.async_connect(found, std::move(done)); });
    return;
  } catch (const boost::system::system_error& error) {
    if (error.code() != asio::error::connection_refused) return;  // the request says so
  }
  fmt::print(stderr, "tetractl: nothing listens at {}:{}, the port of nodetool: {} is asked\n",
             target_.host, kPortOfCassandra, kAdminPort);
  target_.port = kAdminPort;
}

std::string AdminClient::text(const std::string& path) { return get(path).body; }

Answer AdminClient::get(const std::string& path) {
  settle_port();
  return answer_of(target_, [&] {
    asio::ip::tcp::endpoint node;
    return ask_once(target_, http::verb::get, path, "", node);
  });
}

json AdminClient::fact(const std::string& path, const Parameters& parameters) {
  return parsed(target_, get(path_with(path, parameters)));
}

json AdminClient::patient_fact(const std::string& path) {
  while (true) {
    try {
      return fact(path);
    } catch (const NodeSilent& silent) {
      if (!std::exchange(told_of_silence_, true))
        fmt::print(stderr, "tetractl: {}; it is asked again\n", silent.what());
    }
  }
}

json AdminClient::order(const std::string& path, const Parameters& parameters) {
  settle_port();
  return parsed(target_, answer_of(target_, [&] {
                  return order_once(target_, path_with(path, parameters));
                }));
}

}  // namespace tetrad::tools
