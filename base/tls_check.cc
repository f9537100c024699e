// SPDX-License-Identifier: Apache-2.0
//
// The library's own verification, with the same store, level and purpose as in a handshake, so that
// no rule is written twice. Dates come first: they are said with the day, which the library does
// not tell.
#include "base/tls_check.h"

#include <ctime>
#include <memory>

#include <openssl/err.h>
#include <openssl/ssl.h>
#include <openssl/x509v3.h>

namespace tetrad::base {
namespace {

struct FreeCheck {
  void operator()(X509_STORE_CTX* check) const { X509_STORE_CTX_free(check); }
};

std::string time_text(const ASN1_TIME* time) {
  std::tm parts{};
  char text[32] = "?";
  if (ASN1_TIME_to_tm(time, &parts) == 1)
    std::strftime(text, sizeof(text), "%Y-%m-%d %H:%M:%S UTC", &parts);
  return text;
}

Result<void> check_dates(X509* certificate, const std::string& path, int64_t now_s) {
  std::time_t now = now_s;
  const std::string subject = tls_name_text(X509_get_subject_name(certificate));
  if (X509_cmp_time(X509_get0_notBefore(certificate), &now) > 0)
    return fail(ErrorCode::kConfig,
                "{}: the certificate is not valid before {}: peers refuse it (subject {})", path,
                time_text(X509_get0_notBefore(certificate)), subject);
  if (X509_cmp_time(X509_get0_notAfter(certificate), &now) < 0)
    return fail(ErrorCode::kConfig,
                "{}: the certificate has expired, on {}: peers refuse it (subject {})", path,
                time_text(X509_get0_notAfter(certificate)), subject);
  return {};
}

/// The chain leads to nobody who is trusted.
bool is_of_strangers(int error) {
  return error == X509_V_ERR_UNABLE_TO_GET_ISSUER_CERT ||
         error == X509_V_ERR_UNABLE_TO_GET_ISSUER_CERT_LOCALLY ||
         error == X509_V_ERR_UNABLE_TO_VERIFY_LEAF_SIGNATURE ||
         error == X509_V_ERR_DEPTH_ZERO_SELF_SIGNED_CERT ||
         error == X509_V_ERR_SELF_SIGNED_CERT_IN_CHAIN ||
         error == X509_V_ERR_CERT_SIGNATURE_FAILURE;
}

// Purpose and flags as in TlsContext::load(): nodes ask for a server's certificate of both sides.
Result<void> check_chain(const TlsContext& context, const TlsFiles& files, X509* own,
                         STACK_OF(X509) * between, std::optional<int64_t> now_s) {
  const std::unique_ptr<X509_STORE_CTX, FreeCheck> check(X509_STORE_CTX_new());
  if (check == nullptr ||
      X509_STORE_CTX_init(check.get(), SSL_CTX_get_cert_store(context.native()), own, between) != 1)
    return fail(ErrorCode::kServerError, "a certificate cannot be checked for want of memory");
  X509_STORE_CTX_set_default(check.get(), "ssl_server");
  X509_VERIFY_PARAM* const rules = X509_STORE_CTX_get0_param(check.get());
  X509_VERIFY_PARAM_set_auth_level(rules, SSL_CTX_get_security_level(context.native()));
  if (now_s)
    X509_VERIFY_PARAM_set_time(rules, *now_s);
  else
    X509_VERIFY_PARAM_set_flags(rules, X509_V_FLAG_NO_CHECK_TIME);
  if (X509_verify_cert(check.get()) == 1) return {};
  ERR_clear_error();
  const int error = X509_STORE_CTX_get_error(check.get());
  const X509* const at = X509_STORE_CTX_get_current_cert(check.get());
  return fail(ErrorCode::kConfig, "{}: {} {}: other nodes refuse it: {} (subject {}, issuer {})",
              files.certificate,
              is_of_strangers(error) ? "the certificate is not signed by an authority in"
                                     : "the certificate is not good for the authority in",
              files.authority, X509_verify_cert_error_string(error),
              at == nullptr ? "?" : tls_name_text(X509_get_subject_name(at)),
              at == nullptr ? "?" : tls_name_text(X509_get_issuer_name(at)));
}

}  // namespace

Result<void> check_own_certificate(const TlsContext& context, const TlsFiles& files, TlsPeer peer,
                                   std::optional<int64_t> now_s) {
  X509* const own = SSL_CTX_get0_certificate(context.native());
  if (own == nullptr) return {};
  STACK_OF(X509)* between = nullptr;
  SSL_CTX_get0_chain_certs(context.native(), &between);
  if (now_s) {
    TETRAD_TRY_VOID(check_dates(own, files.certificate, *now_s));
    for (int i = 0; i < sk_X509_num(between); ++i)
      TETRAD_TRY_VOID(check_dates(sk_X509_value(between, i), files.certificate, *now_s));
  }
  if (peer == TlsPeer::kServerRequired) return check_chain(context, files, own, between, now_s);
  if (now_s && X509_check_purpose(own, X509_PURPOSE_SSL_SERVER, 0) != 1)
    return fail(ErrorCode::kConfig,
                "{}: the certificate is not one for servers: peers refuse it (subject {})",
                files.certificate, context.subject());
  return {};
}

}  // namespace tetrad::base
