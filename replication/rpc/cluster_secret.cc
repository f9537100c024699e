// SPDX-License-Identifier: Apache-2.0
#include "replication/rpc/cluster_secret.h"

#include <algorithm>

#include "base/assert.h"
#include "base/byte_io.h"
#include "base/hash.h"
#include "base/tls_session.h"
#include "replication/rpc/frame.h"

namespace tetrad::replication {

namespace {

constexpr size_t kNonceBytes = 32, kProofBytes = 32;
constexpr BytesView kOpener = "tetrad opener", kAcceptor = "tetrad acceptor";

Bytes draw_nonce(base::Random& random) {
  Bytes out;
  base::ByteWriter writer(out);
  for (size_t i = 0; i < kNonceBytes / sizeof(uint64_t); ++i) writer.u64(random.next());
  return out;
}

Bytes proof_of(BytesView who, const ClusterSecret& secret, BytesView a, BytesView b) {
  Bytes text(who);
  text.append(a);
  text.append(b);
  const auto proof = base::hmac_sha256(secret.secret.text, text);
  static_assert(std::tuple_size_v<decltype(proof)> == kProofBytes);
  return Bytes(reinterpret_cast<const char*>(proof.data()), proof.size());
}

/// As far as there are bytes of it.
bool begins_as(BytesView bytes, BytesView preface) {
  const size_t size = std::min(bytes.size(), preface.size());
  return bytes.substr(0, size) == preface.substr(0, size);
}

}  // namespace

OpenerProof::OpenerProof(std::shared_ptr<const ClusterSecret> secret, base::Random& random)
    : secret_(std::move(secret)), own_(draw_nonce(random)), out_(kSecretPreface) {
  TETRAD_ASSERT(secret_ != nullptr);
  out_ += own_;
}

Result<bool> OpenerProof::take(BytesView wire) {
  in_.append(wire);
  if (in_.empty()) return false;
  const auto sign = static_cast<SecretSign>(in_.front());
  if (sign != (theirs_.empty() ? SecretSign::kChallenge : SecretSign::kAnswer))
    return refused(sign);
  static_assert(kNonceBytes == kProofBytes);
  if (in_.size() < 1 + kNonceBytes) return false;
  if (in_.size() > 1 + kNonceBytes)
    return fail(ErrorCode::kProtocol, "it sends more than a proof of the cluster's secret");
  const Bytes got = in_.substr(1);
  in_.clear();
  if (theirs_.empty()) {
    theirs_ = got;
    out_ += proof_of(kOpener, *secret_, theirs_, own_);
    return false;
  }
  if (!base::is_same_secret(got, proof_of(kAcceptor, *secret_, theirs_, own_)))
    return fail(ErrorCode::kProtocol,
                "it does not prove that it has the cluster's secret (cluster_secret_file)");
  return true;
}

Result<bool> OpenerProof::refused(SecretSign sign) const {
  switch (sign) {
    case SecretSign::kWrong:
      return fail(ErrorCode::kProtocol,
                  "its secret of the cluster is another one (cluster_secret_file)");
    case SecretSign::kNone:
      return fail(ErrorCode::kProtocol,
                  "it has no secret of the cluster, which this node demands (cluster_secret_file)");
    default:
      break;
  }
  if (static_cast<char>(sign) == base::kTlsAlertByte)
    return fail(ErrorCode::kProtocol,
                "it demands TLS, and this node speaks without (internode_encryption)");
  return fail(ErrorCode::kProtocol,
              "it does not answer as a node that knows the cluster's secret "
              "(cluster_secret_file)");
}

AcceptorProof::AcceptorProof(std::shared_ptr<const ClusterSecret> secret, base::Random& random)
    : secret_(std::move(secret)), own_(draw_nonce(random)) {
  TETRAD_ASSERT(secret_ != nullptr);
}

Result<bool> AcceptorProof::take(BytesView wire) {
  in_.append(wire);
  if (theirs_.empty()) {
    if (!begins_as(in_, kSecretPreface)) return take_without_hello();
    constexpr size_t kHelloBytes = kSecretPreface.size() + kNonceBytes;
    if (in_.size() < kHelloBytes) return false;
    theirs_ = in_.substr(kSecretPreface.size(), kNonceBytes);
    in_.erase(0, kHelloBytes);
    out_ += static_cast<char>(SecretSign::kChallenge);
    out_ += own_;
  }
  if (in_.size() < kProofBytes) return false;
  const Bytes expected = proof_of(kOpener, *secret_, own_, theirs_);
  if (!base::is_same_secret(BytesView(in_).substr(0, kProofBytes), expected))
    return refuse(SecretSign::kWrong,
                  "its secret of the cluster is another one (cluster_secret_file)");
  in_.erase(0, kProofBytes);
  out_ += static_cast<char>(SecretSign::kAnswer);
  out_ += proof_of(kAcceptor, *secret_, own_, theirs_);
  return true;
}

Result<bool> AcceptorProof::take_without_hello() {
  if (!begins_as(in_, kStreamPreface))
    return fail(ErrorCode::kProtocol, "not a Tetrad internode connection, or another version");
  if (in_.size() < kStreamPreface.size()) return false;
  if (!secret_->required) return true;
  return refuse(
      SecretSign::kDemanded,
      "it does not show the cluster's secret, which this node demands (cluster_secret_file)");
}

Result<bool> AcceptorProof::refuse(SecretSign sign, const char* why) {
  out_ += static_cast<char>(sign);
  return fail(ErrorCode::kProtocol, "{}", why);
}

}  // namespace tetrad::replication
