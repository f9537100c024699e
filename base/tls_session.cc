// SPDX-License-Identifier: Apache-2.0
//
// OpenSSL works on two byte buffers through a BIO of its own (Wire): it never sees a socket, and
// "would block" means that feed() must bring more. The library's queue of errors belongs to the
// thread, so each call clears it first.
#include "base/tls_session.h"

#include <algorithm>
#include <cstring>

#include <openssl/err.h>
#include <openssl/ssl.h>
#include <openssl/x509v3.h>

#include "base/assert.h"

namespace tetrad::base {
namespace {

constexpr size_t kInputKept = 4u << 10;  // of a buffer's room, while nothing waits in it

// A name of another's certificate, for a log: cut and without control characters.
std::string shown_name(const X509_NAME* name) {
  if (name == nullptr) return "";
  std::string out = tls_name_text(name);
  for (char& c : out)
    if (static_cast<unsigned char>(c) < 0x20 || c == 0x7F) c = '?';
  if (out.size() > 200) out.resize(200);
  return out;
}

/// What a user of Tetrad can act on, of the reasons that matter; empty: the library's words do.
std::string_view sentence_of(int reason) {
  switch (reason) {
    case SSL_R_TLSV1_ALERT_UNKNOWN_CA:
      return "the peer refuses our certificate: its authority is unknown there";
    case SSL_R_SSLV3_ALERT_BAD_CERTIFICATE:
    case SSL_R_SSLV3_ALERT_CERTIFICATE_UNKNOWN:
    case SSL_R_SSLV3_ALERT_UNSUPPORTED_CERTIFICATE:
      return "the peer refuses our certificate";
    case SSL_R_SSLV3_ALERT_CERTIFICATE_EXPIRED:
      return "the peer refuses our certificate: it has expired, or is not valid yet";
    case SSL_R_SSLV3_ALERT_CERTIFICATE_REVOKED:
      return "the peer refuses our certificate: it is revoked";
    case SSL_R_TLSV13_ALERT_CERTIFICATE_REQUIRED:
      return "the peer demands a certificate, and we have none";
    case SSL_R_PEER_DID_NOT_RETURN_A_CERTIFICATE:
      return "the peer has no certificate, which is demanded here";
    case SSL_R_WRONG_VERSION_NUMBER:
    case SSL_R_HTTP_REQUEST:
    case SSL_R_HTTPS_PROXY_REQUEST:
      return "what the peer sends is not TLS";
    case SSL_R_UNSUPPORTED_PROTOCOL:
    case SSL_R_VERSION_TOO_LOW:
      return "the peer speaks neither TLS 1.2 nor 1.3";
    case SSL_R_NO_SHARED_CIPHER:
      return "the peer has no cipher in common with us";
    case SSL_R_UNEXPECTED_EOF_WHILE_READING:
      return "the peer has gone in the middle";
    default:
      return {};
  }
}

}  // namespace

/// A BIO over the buffers of its session.
struct TlsSession::Wire {
  // Nothing left means: to be called again when more was fed.
  static int read(BIO* bio, char* room, size_t size, size_t* got) {
    auto& self = *static_cast<TlsSession*>(BIO_get_data(bio));
    BIO_clear_retry_flags(bio);
    *got = std::min(size, self.in_.size() - self.in_used_);
    if (*got == 0) {
      BIO_set_retry_read(bio);
      return 0;
    }
    std::memcpy(room, self.in_.data() + self.in_used_, *got);
    self.in_used_ += *got;
    return 1;
  }
  static int write(BIO* bio, const char* bytes, size_t size, size_t* taken) {
    auto& self = *static_cast<TlsSession*>(BIO_get_data(bio));
    BIO_clear_retry_flags(bio);
    self.out_.append(bytes, size);
    *taken = size;
    return 1;
  }
  static long control(BIO*, int what, long, void*) { return what == BIO_CTRL_FLUSH ? 1 : 0; }
  // One for the process, never freed.
  static const BIO_METHOD* method() {
    static const BIO_METHOD* const made = [] {
      BIO_METHOD* const out = BIO_meth_new(BIO_get_new_index() | BIO_TYPE_SOURCE_SINK, "tetrad");
      BIO_meth_set_read_ex(out, &Wire::read);
      BIO_meth_set_write_ex(out, &Wire::write);
      BIO_meth_set_ctrl(out, &Wire::control);
      return out;
    }();
    return made;
  }
};

Result<std::unique_ptr<TlsSession>> TlsSession::make(std::shared_ptr<const TlsContext> context,
                                                     Role role, const std::string& expected_host) {
  std::unique_ptr<TlsSession> out(new TlsSession);
  out->context_ = std::move(context);
  // The rest where a server's handshake runs: off its loop.
  if (role == Role::kServer) return out;
  TETRAD_TRY_VOID(out->begin());
  SSL_set_connect_state(out->ssl_);
  if (expected_host.empty()) return out;
  X509_VERIFY_PARAM* const rules = SSL_get0_param(out->ssl_);
  // An address is compared with the certificate's addresses, anything else with its DNS names; only
  // a name is sent along (SNI).
  const bool is_address = X509_VERIFY_PARAM_set1_ip_asc(rules, expected_host.c_str()) == 1;
  ERR_clear_error();
  if (!is_address && (SSL_set1_host(out->ssl_, expected_host.c_str()) != 1 ||
                      SSL_set_tlsext_host_name(out->ssl_, expected_host.c_str()) != 1)) {
    ERR_clear_error();
    return fail(ErrorCode::kConfig, "'{}' is no name that a certificate could have", expected_host);
  }
  return out;
}

Result<void> TlsSession::begin() {
  ssl_ = SSL_new(context_->native());
  BIO* const bio = ssl_ == nullptr ? nullptr : BIO_new(Wire::method());
  if (bio == nullptr) {
    ERR_clear_error();
    return fail(ErrorCode::kServerError, "a TLS connection cannot be made for want of memory");
  }
  BIO_set_data(bio, this);
  BIO_set_init(bio, 1);
  SSL_set_bio(ssl_, bio, bio);
  // For verified(), which gets the library's objects only.
  SSL_set_app_data(ssl_, this);
  SSL_set_verify(ssl_, SSL_CTX_get_verify_mode(context_->native()), &verified);
  return {};
}

TlsSession::~TlsSession() { SSL_free(ssl_); }

int TlsSession::verified(int is_good, X509_STORE_CTX* check) {
  if (is_good == 1) return 1;
  const auto* ssl =
      static_cast<SSL*>(X509_STORE_CTX_get_ex_data(check, SSL_get_ex_data_X509_STORE_CTX_idx()));
  auto& self = *static_cast<TlsSession*>(SSL_get_app_data(ssl));
  const X509* const certificate = X509_STORE_CTX_get_current_cert(check);
  self.refused_ = X509_verify_cert_error_string(X509_STORE_CTX_get_error(check));
  if (certificate != nullptr)
    self.refused_ +=
        fmt::format(" (subject {}, issuer {})", shown_name(X509_get_subject_name(certificate)),
                    shown_name(X509_get_issuer_name(certificate)));
  return 0;
}

void TlsSession::feed(BytesView wire) {
  // The library has taken all of it: the buffer begins anew and does not grow.
  if (in_used_ == in_.size()) {
    in_.clear();
    in_used_ = 0;
  }
  in_.append(wire);
}

Error TlsSession::failure(int result) {
  failed_ = true;
  const int kind = SSL_get_error(ssl_, result);
  // In this order: our own check has refused the certificate; the peer has closed; a reason that
  // has a sentence of ours; the library's words.
  const unsigned long code = ERR_peek_last_error();
  ERR_clear_error();
  if (!refused_.empty())
    return {ErrorCode::kProtocol, "the certificate of the peer is refused: " + refused_};
  if (kind == SSL_ERROR_ZERO_RETURN)
    return {ErrorCode::kProtocol, "the peer has ended the handshake"};
  const auto sentence = sentence_of(ERR_GET_REASON(code));
  if (!sentence.empty()) return {ErrorCode::kProtocol, std::string(sentence)};
  const char* const words = code == 0 ? nullptr : ERR_reason_error_string(code);
  return {ErrorCode::kProtocol, words == nullptr ? "TLS failed" : words};
}

Result<bool> TlsSession::handshake() {
  TETRAD_ASSERT(!failed_);
  if (is_open_) return true;
  if (ssl_ == nullptr) {
    const auto begun = begin();
    if (!begun) {
      failed_ = true;
      return std::unexpected(begun.error());
    }
    SSL_set_accept_state(ssl_);
  }
  ERR_clear_error();
  const int result = SSL_do_handshake(ssl_);
  if (result != 1) {
    const int kind = SSL_get_error(ssl_, result);
    if (kind == SSL_ERROR_WANT_READ) return false;
    return std::unexpected(failure(result));
  }
  is_open_ = true;
  return true;
}

Result<size_t> TlsSession::read(char* room, size_t size) {
  TETRAD_ASSERT(is_open_);
  if (failed_) return fail(ErrorCode::kProtocol, "TLS failed");
  if (ended_) return 0;
  if (in_used_ == in_.size() && SSL_pending(ssl_) == 0) {  // as the library would find out
    in_.clear();
    in_used_ = 0;
    // An idle connection keeps no large buffer.
    if (in_.capacity() > kInputKept) Bytes().swap(in_);
    return 0;
  }
  ERR_clear_error();
  size_t got = 0;
  const int result = SSL_read_ex(ssl_, room, size, &got);
  if (result == 1) return got;
  const int kind = SSL_get_error(ssl_, result);
  if (kind == SSL_ERROR_WANT_READ) return 0;
  if (kind == SSL_ERROR_ZERO_RETURN) {
    ended_ = true;
    return 0;
  }
  return std::unexpected(failure(result));
}

Result<void> TlsSession::write(BytesView bytes) {
  TETRAD_ASSERT(is_open_);
  if (failed_) return fail(ErrorCode::kProtocol, "TLS failed");
  if (bytes.empty()) return {};
  ERR_clear_error();
  size_t taken = 0;
  const int result = SSL_write_ex(ssl_, bytes.data(), bytes.size(), &taken);
  if (result != 1) return std::unexpected(failure(result));
  TETRAD_ASSERT(taken == bytes.size());
  return {};
}

void TlsSession::end() {
  if (!is_open_ || failed_) return;
  SSL_shutdown(ssl_);
  ERR_clear_error();
}

TlsSession::PeerNames TlsSession::peer_names() const {
  PeerNames out;
  X509* const certificate = is_open_ ? SSL_get0_peer_certificate(ssl_) : nullptr;
  // With kUnasked or kIfGiven a session may be open without a certificate that was verified.
  if (certificate == nullptr || SSL_get_verify_result(ssl_) != X509_V_OK) return out;
  // A NUL inside a name is an old trick to look like another name: such a name counts as none.
  const auto text_of = [](const ASN1_STRING* value) {
    unsigned char* utf8 = nullptr;
    const int size = ASN1_STRING_to_UTF8(&utf8, value);
    if (size < 0) return std::string();
    std::string text(reinterpret_cast<char*>(utf8), static_cast<size_t>(size));
    OPENSSL_free(utf8);
    return text.find('\0') == std::string::npos ? text : std::string();
  };
  const X509_NAME* const subject = X509_get_subject_name(certificate);
  const int at = X509_NAME_get_index_by_NID(subject, NID_commonName, -1);
  if (at >= 0)
    out.common_name = text_of(X509_NAME_ENTRY_get_data(X509_NAME_get_entry(subject, at)));
  auto* const names = static_cast<GENERAL_NAMES*>(
      X509_get_ext_d2i(certificate, NID_subject_alt_name, nullptr, nullptr));
  for (int i = 0; i < sk_GENERAL_NAME_num(names); ++i) {
    const GENERAL_NAME* const name = sk_GENERAL_NAME_value(names, i);
    std::vector<std::string>* const list = name->type == GEN_DNS     ? &out.dns
                                           : name->type == GEN_URI   ? &out.uris
                                           : name->type == GEN_EMAIL ? &out.emails
                                                                     : nullptr;
    if (list == nullptr) continue;
    std::string text = text_of(name->d.ia5);
    if (!text.empty()) list->push_back(std::move(text));
  }
  GENERAL_NAMES_free(names);
  return out;
}

std::string TlsSession::description() const {
  return fmt::format("{} {}", version(), cipher_suite());
}

std::string TlsSession::version() const { return SSL_get_version(ssl_); }

std::string TlsSession::cipher_suite() const { return SSL_get_cipher_name(ssl_); }

}  // namespace tetrad::base
