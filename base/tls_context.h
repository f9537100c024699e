// SPDX-License-Identifier: Apache-2.0
// Certificates and keys for TLS (OpenSSL 3), read from PEM files, and read anew while the program
// runs. TLS 1.3 and 1.2 with the ciphers that give forward secrecy; no renegotiation, no
// resumption, so that each connection shows its certificate to the authority that holds now.
//
// The parameters of a context never change; a reload makes another one. Keys are in the library's
// memory only, and the text they were read from is wiped.
#pragma once

#include <array>
#include <cstdint>
#include <memory>
#include <mutex>
#include <optional>
#include <string>

#include "base/result.h"

struct ssl_ctx_st;  // OpenSSL's
struct X509_name_st;

namespace tetrad::base {

/// Paths of PEM files. `authority`: certificates of those whose word counts for a peer.
struct TlsFiles {
  std::string certificate;  // the own one first, then those between it and its authority
  std::string key;
  std::string authority;
};

/// What a peer must show. kIfGiven: no certificate, or one that the authority has signed.
/// kServerRequired: one that is good for a server, also of who connects: so nodes differ from
/// clients whose certificates the same authority has signed.
enum class TlsPeer : uint8_t { kUnasked, kIfGiven, kRequired, kServerRequired };

/// "CN=node1,O=...", as RFC 2253 writes a name, except that UTF-8 stays as it is. Of any length.
std::string tls_name_text(const X509_name_st* name);

/// One state of the files. Immutable; sessions of any thread share it.
class TlsContext {
 public:
  /// Reads the files. A client may have no certificate, and whom nobody is asked no authority: then
  /// the paths are empty. Errors: kConfig with the path and what is wrong with the file: it cannot
  /// be read, is not PEM, the key is not that of the certificate, needs a passphrase, is too weak.
  static Result<std::shared_ptr<const TlsContext>> load(const TlsFiles& files, TlsPeer peer);
  ~TlsContext();
  TlsContext(const TlsContext&) = delete;
  TlsContext& operator=(const TlsContext&) = delete;

  /// For TlsSession. It stays this object's.
  ssl_ctx_st* native() const { return native_; }
  /// Of the own certificate: seconds since 1970; 0: there is none.
  int64_t not_before_s() const { return not_before_s_; }
  int64_t not_after_s() const { return not_after_s_; }
  /// "CN=...", as OpenSSL writes names.
  const std::string& subject() const { return subject_; }

 private:
  friend class TlsCredentials;
  TlsContext() = default;
  ssl_ctx_st* native_ = nullptr;
  int64_t not_before_s_ = 0, not_after_s_ = 0;
  std::string subject_;
  // Tells a reload whether anything has changed, without keeping the texts.
  std::array<uint8_t, 32> digest_{};  // of what the files held
};

/// The files and their newest state that is good. Thread-safe.
class TlsCredentials {
 public:
  /// Errors: as TlsContext::load.
  static Result<std::shared_ptr<TlsCredentials>> open(TlsFiles files, TlsPeer peer);
  TlsCredentials(TlsFiles files, TlsPeer peer, std::shared_ptr<const TlsContext> first)
      : files_(std::move(files)), peer_(peer), current_(std::move(first)) {}

  /// For the next connection. Those that are open keep theirs.
  std::shared_ptr<const TlsContext> current() const;
  /// As check_own_certificate(), of the newest state.
  Result<void> check(std::optional<int64_t> now_s) const;
  /// Reads the files again, which blocks: off the loop. True: they have changed, and hold from now
  /// on. After an error the old ones go on to hold; a certificate that peers would refuse at
  /// `now_s`, seconds since 1970, is one.
  Result<bool> reload(int64_t now_s);
  /// Paths, for messages and for the admin port.
  const TlsFiles& files() const { return files_; }

 private:
  const TlsFiles files_;
  const TlsPeer peer_;
  // Guards current_ only: files are read outside of it.
  mutable std::mutex mutex_;
  std::shared_ptr<const TlsContext> current_;
};

}  // namespace tetrad::base
