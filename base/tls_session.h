// SPDX-License-Identifier: Apache-2.0
// One end of a TLS connection, without a socket: bytes of the wire go in by feed() and come out in
// out(), those of the user by read() and write(). What is to be sent must be sent, also after an
// error: it is the alert that tells the peer.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "base/bytes.h"
#include "base/result.h"
#include "base/tls_context.h"

struct ssl_st;  // OpenSSL's
struct x509_store_ctx_st;

namespace tetrad::base {

/// The first byte of what a TLS client sends, and of an alert.
inline constexpr char kTlsHandshakeByte = 0x16, kTlsAlertByte = 0x15;

/// Belongs to one thread at a time.
class TlsSession {
 public:
  /// Who begins the handshake.
  enum class Role : uint8_t { kClient, kServer };
  /// Whom a verified certificate names.
  struct PeerNames {
    std::string common_name;
    std::vector<std::string> dns, uris, emails;  // of the subject's alternative names
  };

  /// `expected_host`, of a client: the peer's certificate must name it, a DNS name or an IP
  /// address; empty: any that the authority has signed. Errors: kServerError, for want of memory;
  /// kConfig, for a host that cannot be looked for.
  static Result<std::unique_ptr<TlsSession>> make(std::shared_ptr<const TlsContext> context,
                                                  Role role, const std::string& expected_host = {});
  ~TlsSession();
  TlsSession(const TlsSession&) = delete;
  TlsSession& operator=(const TlsSession&) = delete;

  /// What the peer has sent next. Kept until handshake() or read() has used it.
  void feed(BytesView wire);
  /// As far as what was fed allows. True: the peer is who it should be, and data may go both ways.
  /// May take milliseconds. Errors: kProtocol, with what is wrong with the peer or what it says is
  /// wrong with us; the session is of no more use then.
  Result<bool> handshake();
  /// Of the user's bytes what there is, at most `size`; 0: more must be fed, or has_ended().
  /// Errors: kProtocol, the session is of no more use then.
  Result<size_t> read(char* room, size_t size);
  /// The peer has said that nothing more comes.
  bool has_ended() const { return ended_; }
  /// Appends to out(). After the handshake only.
  Result<void> write(BytesView bytes);
  /// Says that nothing more comes from here.
  void end();

  /// To be sent, and then cleared or swapped away.
  Bytes& out() { return out_; }
  /// Empty without a certificate, or before the handshake is over.
  PeerNames peer_names() const;
  /// "TLSv1.3 TLS_AES_128_GCM_SHA256".
  std::string description() const;
  std::string version() const;
  std::string cipher_suite() const;

 private:
  struct Wire;  // the library's way to feed() and out()
  TlsSession() = default;
  /// Makes the library's object, which takes ten microseconds and kilobytes.
  Result<void> begin();
  Error failure(int result);
  // Called by the library for each certificate of the chain; notes why one is refused.
  static int verified(int is_good, x509_store_ctx_st* certificate);

  // The certificates that held when the connection was made: a reload leaves open sessions alone.
  std::shared_ptr<const TlsContext> context_;
  ssl_st* ssl_ = nullptr;  // null: a server whose handshake() has not been called yet
  // in_ from in_used_ on is ciphertext that the library has not taken yet. out_ is ciphertext that
  // the owner has not sent yet.
  Bytes in_, out_;
  size_t in_used_ = 0;
  // is_open_: the handshake is over. ended_: the peer has closed its side. failed_: nothing but
  // out() may be used any more.
  bool is_open_ = false, ended_ = false, failed_ = false;
  std::string refused_;  // why the peer's certificate is
};

}  // namespace tetrad::base
