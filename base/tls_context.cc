// SPDX-License-Identifier: Apache-2.0
//
// What the library says of a file is turned into one line that names the file and what to do. Its
// queue of errors belongs to the thread and is emptied after each call, so that no later call
// reports an old one.
#include "base/tls_context.h"

#include <cerrno>
#include <cstring>
#include <ctime>
#include <fstream>
#include <vector>

#include <openssl/err.h>
#include <openssl/pem.h>
#include <openssl/ssl.h>
#include <openssl/x509v3.h>

#include "base/bytes.h"
#include "base/hash.h"
#include "base/tls_check.h"

namespace tetrad::base {
namespace {

constexpr size_t kFileBytesMax = 4u << 20;
constexpr long kPeerChainBytesMax = 32 << 10;  // of the certificates that a peer shows
// Forward secrecy and authenticated encryption only (RFC 7525); the order is the server's
// preference.
constexpr const char* kCiphersOf12 =
    "ECDHE-ECDSA-AES128-GCM-SHA256:ECDHE-RSA-AES128-GCM-SHA256:ECDHE-ECDSA-AES256-GCM-SHA384:"
    "ECDHE-RSA-AES256-GCM-SHA384:ECDHE-ECDSA-CHACHA20-POLY1305:ECDHE-RSA-CHACHA20-POLY1305";
constexpr const char* kCiphersOf13 =
    "TLS_AES_128_GCM_SHA256:TLS_AES_256_GCM_SHA384:TLS_CHACHA20_POLY1305_SHA256";

template <auto Free>
struct Freed {
  template <class T>
  void operator()(T* pointer) const {
    Free(pointer);
  }
};
using Bio = std::unique_ptr<BIO, Freed<BIO_free_all>>;
using Certificate = std::unique_ptr<X509, Freed<X509_free>>;
using Key = std::unique_ptr<EVP_PKEY, Freed<EVP_PKEY_free>>;

/// What the library says last, its queue emptied.
std::string reason() {
  const unsigned long code = ERR_peek_last_error();
  const char* const text = code == 0 ? nullptr : ERR_reason_error_string(code);
  ERR_clear_error();
  return text == nullptr ? "unknown reason" : text;
}

// One byte more than allowed is read, so that a file that is too large is noticed without asking
// for its size.
Result<std::string> read_file(const std::string& path) {
  errno = 0;
  std::ifstream file(path, std::ios::binary);
  std::string text(kFileBytesMax + 1, '\0');
  file.read(text.data(), static_cast<std::streamsize>(text.size()));
  const auto size = static_cast<size_t>(file.gcount());
  if (!file.eof() && size <= kFileBytesMax)
    return fail(ErrorCode::kConfig, "cannot read {}: {}", path,
                std::strerror(errno == 0 ? EIO : errno));
  if (size > kFileBytesMax)
    return fail(ErrorCode::kConfig, "{} is larger than any certificate", path);
  text.resize(size);
  return text;
}

// A view: the text outlives it.
Bio bio_of(const std::string& text) {
  return Bio(BIO_new_mem_buf(text.data(), static_cast<int>(text.size())));
}

/// Keeps the library from asking the terminal, and notes that it would have.
int note_passphrase(char*, int, int, void* asked) {
  *static_cast<bool*>(asked) = true;
  return -1;
}

/// All of a file; at least one.
Result<std::vector<Certificate>> certificates_of(const std::string& text, const std::string& path) {
  const Bio bio = bio_of(text);
  std::vector<Certificate> out;
  bool asked = false;
  ERR_clear_error();
  while (Certificate next{PEM_read_bio_X509(bio.get(), nullptr, note_passphrase, &asked)})
    out.push_back(std::move(next));
  // The end of the file shows as "no start line"; any other error is a damaged certificate.
  const unsigned long end = ERR_peek_last_error();
  const bool is_end = ERR_GET_LIB(end) == ERR_LIB_PEM && ERR_GET_REASON(end) == PEM_R_NO_START_LINE;
  const std::string why = reason();
  if (!is_end) return fail(ErrorCode::kConfig, "{}: a certificate does not read: {}", path, why);
  if (out.empty()) return fail(ErrorCode::kConfig, "{} holds no certificate in PEM form", path);
  return out;
}

Result<Key> key_of(const std::string& text, const std::string& path) {
  const Bio bio = bio_of(text);
  bool asked = false;
  ERR_clear_error();
  Key key(PEM_read_bio_PrivateKey(bio.get(), nullptr, note_passphrase, &asked));
  const std::string why = reason();
  if (key != nullptr) return key;
  if (asked)
    return fail(ErrorCode::kConfig, "{}: the key needs a passphrase; give a file without one",
                path);
  return fail(ErrorCode::kConfig, "{} holds no private key in PEM form ({})", path, why);
}

// Certificates have UTC. 0 for a time that does not read.
int64_t seconds_of(const ASN1_TIME* time) {
  std::tm parts{};
  return ASN1_TIME_to_tm(time, &parts) == 1 ? static_cast<int64_t>(::timegm(&parts)) : 0;
}

// First the node's own, then the chain in order: what a peer is sent so that it can reach its
// authority.
Result<void> use_certificate(SSL_CTX* context, const TlsFiles& files,
                             const std::vector<Certificate>& chain, const Key& key) {
  if (SSL_CTX_use_certificate(context, chain.front().get()) != 1)
    return fail(ErrorCode::kConfig, "{}: the certificate is refused: {}", files.certificate,
                reason());
  for (size_t i = 1; i < chain.size(); ++i) {
    if (SSL_CTX_add1_chain_cert(context, chain[i].get()) != 1)
      return fail(ErrorCode::kConfig, "{}: certificate {} of the chain is refused: {}",
                  files.certificate, i + 1, reason());
  }
  if (X509_check_private_key(chain.front().get(), key.get()) != 1) {
    ERR_clear_error();
    return fail(ErrorCode::kConfig, "the key in {} is not that of the certificate in {}", files.key,
                files.certificate);
  }
  if (SSL_CTX_use_PrivateKey(context, key.get()) != 1)
    return fail(ErrorCode::kConfig, "{}: the key is refused: {}", files.key, reason());
  return {};
}

// Both as trusted and in the list of names that a server sends, by which clients choose their
// certificate.
Result<void> use_authority(SSL_CTX* context, const std::string& path,
                           const std::vector<Certificate>& authorities) {
  X509_STORE* const store = SSL_CTX_get_cert_store(context);
  for (const Certificate& authority : authorities) {
    if (X509_STORE_add_cert(store, authority.get()) != 1 ||
        SSL_CTX_add_client_CA(context, authority.get()) != 1)
      return fail(ErrorCode::kConfig, "{}: a certificate is refused: {}", path, reason());
  }
  return {};
}

int mode_of(TlsPeer peer) {
  switch (peer) {
    case TlsPeer::kUnasked:
      return SSL_VERIFY_NONE;
    case TlsPeer::kIfGiven:
      return SSL_VERIFY_PEER;
    case TlsPeer::kRequired:
    case TlsPeer::kServerRequired:
      break;
  }
  return SSL_VERIFY_PEER | SSL_VERIFY_FAIL_IF_NO_PEER_CERT;
}

}  // namespace

std::string tls_name_text(const X509_NAME* name) {
  const Bio bio(BIO_new(BIO_s_mem()));
  X509_NAME_print_ex(bio.get(), name, 0, XN_FLAG_RFC2253 & ~ASN1_STRFLGS_ESC_MSB);
  char* data = nullptr;
  const long size = BIO_get_mem_data(bio.get(), &data);
  return std::string(data, static_cast<size_t>(size));
}

Result<std::shared_ptr<const TlsContext>> TlsContext::load(const TlsFiles& files, TlsPeer peer) {
  std::shared_ptr<TlsContext> out(new TlsContext);
  SSL_CTX* const context = out->native_ = SSL_CTX_new(TLS_method());
  if (context == nullptr)
    return fail(ErrorCode::kServerError, "TLS cannot be set up: {}", reason());
  SSL_CTX_set_min_proto_version(context, TLS1_2_VERSION);
  if (SSL_CTX_set_cipher_list(context, kCiphersOf12) != 1 ||
      SSL_CTX_set_ciphersuites(context, kCiphersOf13) != 1)
    return fail(ErrorCode::kServerError, "TLS cannot be set up: {}", reason());
  SSL_CTX_set_options(context, SSL_OP_NO_RENEGOTIATION | SSL_OP_NO_COMPRESSION | SSL_OP_NO_TICKET |
                                   SSL_OP_CIPHER_SERVER_PREFERENCE | SSL_OP_PRIORITIZE_CHACHA);
  SSL_CTX_set_num_tickets(context, 0);
  SSL_CTX_set_session_cache_mode(context, SSL_SESS_CACHE_OFF);
  SSL_CTX_set_mode(context, SSL_MODE_RELEASE_BUFFERS | SSL_MODE_NO_AUTO_CHAIN);
  SSL_CTX_set_max_cert_list(context, kPeerChainBytesMax);
  SSL_CTX_set_verify(context, mode_of(peer), nullptr);
  if (peer == TlsPeer::kServerRequired) SSL_CTX_set_purpose(context, X509_PURPOSE_SSL_SERVER);
  std::string all;
  if (!files.certificate.empty()) {
    TETRAD_TRY(const std::string chain_text, read_file(files.certificate));
    TETRAD_TRY(const auto chain, certificates_of(chain_text, files.certificate));
    TETRAD_TRY(std::string key_text, read_file(files.key));
    const auto key = key_of(key_text, files.key);
    all = fmt::format("{}:{}{}:{}", chain_text.size(), chain_text, key_text.size(), key_text);
    OPENSSL_cleanse(key_text.data(), key_text.size());
    if (!key) return std::unexpected(key.error());
    TETRAD_TRY_VOID(use_certificate(context, files, chain, *key));
    out->not_before_s_ = seconds_of(X509_get0_notBefore(chain.front().get()));
    out->not_after_s_ = seconds_of(X509_get0_notAfter(chain.front().get()));
    out->subject_ = tls_name_text(X509_get_subject_name(chain.front().get()));
  }
  if (!files.authority.empty()) {
    TETRAD_TRY(const std::string text, read_file(files.authority));
    TETRAD_TRY(const auto authorities, certificates_of(text, files.authority));
    TETRAD_TRY_VOID(use_authority(context, files.authority, authorities));
    all += text;
  }
  out->digest_ = sha256(all);
  OPENSSL_cleanse(all.data(), all.size());
  return std::shared_ptr<const TlsContext>(std::move(out));
}

TlsContext::~TlsContext() { SSL_CTX_free(native_); }

Result<std::shared_ptr<TlsCredentials>> TlsCredentials::open(TlsFiles files, TlsPeer peer) {
  TETRAD_TRY(auto first, TlsContext::load(files, peer));
  return std::make_shared<TlsCredentials>(std::move(files), peer, std::move(first));
}

std::shared_ptr<const TlsContext> TlsCredentials::current() const {
  const std::lock_guard lock(mutex_);
  return current_;
}

Result<void> TlsCredentials::check(std::optional<int64_t> now_s) const {
  return check_own_certificate(*current(), files_, peer_, now_s);
}

Result<bool> TlsCredentials::reload(int64_t now_s) {
  TETRAD_TRY(auto next, TlsContext::load(files_, peer_));
  if (next->digest_ == current()->digest_) return false;
  TETRAD_TRY_VOID(check_own_certificate(*next, files_, peer_, now_s));
  const std::lock_guard lock(mutex_);
  current_ = std::move(next);
  return true;
}

}  // namespace tetrad::base
