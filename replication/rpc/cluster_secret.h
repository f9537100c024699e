// SPDX-License-Identifier: Apache-2.0
// The secret of a cluster. On a connection between nodes that do not speak TLS both ends prove that
// they have it, before the stream of messages begins.
//
//   opener             acceptor
//   hello
//                      challenge, or refusal
//   proof
//                      answer, or refusal
//   stream (frame.h)
//
//   hello     := "TETRAD", u16 0x8001, 32 B random B
//   challenge := u8 0x01, 32 B random A
//   proof     := HMAC-SHA-256 of "tetrad opener", A, B under the secret
//   answer    := u8 0x02, HMAC-SHA-256 of "tetrad acceptor", A, B under the secret
//   refusal   := u8: 0x81 the opener must prove and does not, 0x82 its proof is wrong,
//                0x83 the acceptor has no secret; then the connection ends
//   example: 544554524144 8001 202122232425262728292a2b2c2d2e2f303132333435363738393a3b3c3d3e3f
//            01 000102030405060708090a0b0c0d0e0f101112131415161718191a1b1c1d1e1f  challenge
//            fc6295a9380a763728f170318e0c1f9350eeff01a91f2af6151c77e8b892732c  proof
//            02 0020b9b16616bb571cdb6e309fb266ddf92b0faecd18dc005a31d37ba9ee48e0  answer,
//   under the secret "0123456789abcdef".
//
// An opener without a secret begins with its stream, whose version differs, so that the acceptor
// can tell. A proof is good for one connection, for which both sides draw. The opener proves first:
// who connects to a node gets nothing to try secrets on. Later bytes are neither hidden nor signed:
// against who reads or changes them on their way TLS helps, not this.
#pragma once

#include <memory>

#include "base/bytes.h"
#include "base/random.h"
#include "base/result.h"
#include "base/secret.h"

namespace tetrad::replication {

/// Immutable; connections of any thread share it.
struct ClusterSecret {
  base::SecretText secret;
  /// False: peers without it, or with another one, are let in, too, and messages go to them: for
  /// the time in which the nodes of a running cluster are given it.
  bool required = true;
};

inline constexpr BytesView kSecretPreface{"TETRAD\x80\x01", 8};

/// The first byte of what an acceptor sends. On the wire: never renumber, and never the first byte
/// of a TLS record (0x14 to 0x17).
enum class SecretSign : char {
  kChallenge = '\x01',
  kAnswer = '\x02',
  kDemanded = '\x81',
  kWrong = '\x82',
  kNone = '\x83',
};

/// The end of the opener, without a socket: what is in out() is to be sent, then cleared.
class OpenerProof {
 public:
  OpenerProof(std::shared_ptr<const ClusterSecret> secret, base::Random& random);
  /// What the acceptor has sent next. True: it has proved that it has the secret, and the stream
  /// may begin. Errors: kProtocol, with the reason; nothing more is taken then.
  Result<bool> take(BytesView wire);
  Bytes& out() { return out_; }

 private:
  Result<bool> refused(SecretSign sign) const;

  const std::shared_ptr<const ClusterSecret> secret_;
  const Bytes own_;
  Bytes theirs_;  // empty: the challenge has not come
  Bytes in_, out_;
};

/// The end of the acceptor, without a socket: what is in out() is to be sent, then cleared, also
/// after an error.
class AcceptorProof {
 public:
  AcceptorProof(std::shared_ptr<const ClusterSecret> secret, base::Random& random);
  /// What the opener has sent next. True: it has proved that it has the secret, or need not; rest()
  /// is the beginning of its stream. Errors: kProtocol, with the reason; no more is taken then.
  Result<bool> take(BytesView wire);
  Bytes& out() { return out_; }
  Bytes& rest() { return in_; }

 private:
  Result<bool> take_without_hello();
  Result<bool> refuse(SecretSign sign, const char* why);

  const std::shared_ptr<const ClusterSecret> secret_;
  const Bytes own_;
  Bytes theirs_;  // empty: the hello has not come
  Bytes in_, out_;
};

}  // namespace tetrad::replication
