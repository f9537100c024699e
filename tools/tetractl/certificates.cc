// SPDX-License-Identifier: Apache-2.0
// Keys are of the curve P-256, signatures are with SHA-256. A node's certificate is good for
// servers and for clients, since nodes connect to each other; a client's is good for clients only,
// by which nodes tell them apart (base::TlsPeer::kServerRequired). The authority signs no other
// authorities.
#include "tools/tetractl/certificates.h"

#include <cerrno>
#include <cstring>
#include <fcntl.h>
#include <filesystem>
#include <fstream>
#include <memory>
#include <set>
#include <sstream>
#include <sys/stat.h>
#include <unistd.h>

#include <boost/asio/ip/address.hpp>
#include <openssl/err.h>
#include <openssl/evp.h>
#include <openssl/pem.h>
#include <openssl/rand.h>
#include <openssl/x509v3.h>

namespace tetrad::tools {
namespace {

constexpr uint64_t kAuthorityDays = 3'650;
constexpr long kEarlier_s = 3'600;  // clocks of nodes may differ

// OpenSSL's own functions free what it makes.
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
using Extension = std::unique_ptr<X509_EXTENSION, Freed<X509_EXTENSION_free>>;

struct Pair {
  Certificate certificate;
  Key key;
};

/// What a certificate is to say.
struct Content {
  std::string common_name;
  std::string alternative_names;  // as OpenSSL's configuration writes them; empty: none
  const char* usage;              // extended; null: an authority
  uint64_t days;
};

// Nothing of the user's is wrong in these cases: want of memory or of random numbers.
std::unexpected<Error> library_failed(const char* what) {
  const char* const why = ERR_reason_error_string(ERR_peek_last_error());
  ERR_clear_error();
  return fail(ErrorCode::kServerError, "cannot {}: {}", what, why == nullptr ? "no reason" : why);
}

// False: the library has refused it; `value` is in the syntax of openssl.cnf.
bool add_extension(X509* certificate, X509* issuer, int what, const std::string& value) {
  X509V3_CTX context{};
  X509V3_set_ctx(&context, issuer, certificate, nullptr, nullptr, 0);
  const Extension extension(X509V3_EXT_conf_nid(nullptr, &context, what, value.c_str()));
  return extension != nullptr && X509_add_ext(certificate, extension.get(), -1) == 1;
}

// 127 random bits, so that no list of given numbers is kept.
bool set_serial(X509* certificate) {
  unsigned char bytes[16];
  if (RAND_bytes(bytes, sizeof(bytes)) != 1) return false;
  bytes[0] &= 0x7F;
  BIGNUM* const number = BN_bin2bn(bytes, sizeof(bytes), nullptr);
  const bool is_set = BN_to_ASN1_INTEGER(number, X509_get_serialNumber(certificate)) != nullptr;
  BN_free(number);
  return is_set;
}

/// `issuer`: null, it signs itself.
/// The steps: a key, names and dates, the issuer's name, extensions, and last the signature over
/// all of it.
Result<Pair> make_pair(const Content& content, const Pair* issuer) {
  Pair out{Certificate(X509_new()), Key(EVP_EC_gen("P-256"))};
  X509* const certificate = out.certificate.get();
  if (certificate == nullptr || out.key == nullptr) return library_failed("make a key");
  X509* const signer = issuer == nullptr ? certificate : issuer->certificate.get();
  X509_NAME* const name = X509_get_subject_name(certificate);
  const bool is_authority = content.usage == nullptr;
  const auto days_s = static_cast<long>(content.days) * 86'400;
  bool is_good =
      X509_set_version(certificate, X509_VERSION_3) == 1 && set_serial(certificate) &&
      X509_gmtime_adj(X509_getm_notBefore(certificate), -kEarlier_s) != nullptr &&
      X509_gmtime_adj(X509_getm_notAfter(certificate), days_s) != nullptr &&
      X509_NAME_add_entry_by_txt(name, "CN", MBSTRING_UTF8,
                                 reinterpret_cast<const unsigned char*>(content.common_name.data()),
                                 static_cast<int>(content.common_name.size()), -1, 0) == 1 &&
      X509_set_issuer_name(certificate, X509_get_subject_name(signer)) == 1 &&
      X509_set_pubkey(certificate, out.key.get()) == 1 &&
      add_extension(certificate, signer, NID_basic_constraints,
                    is_authority ? "critical,CA:TRUE,pathlen:0" : "critical,CA:FALSE") &&
      add_extension(certificate, signer, NID_key_usage,
                    is_authority ? "critical,keyCertSign,cRLSign" : "critical,digitalSignature") &&
      add_extension(certificate, signer, NID_subject_key_identifier, "hash") &&
      // "always": the authority's own names itself, which it is free to leave empty otherwise.
      add_extension(certificate, signer, NID_authority_key_identifier, "keyid:always");
  if (is_good && !is_authority)
    is_good = add_extension(certificate, signer, NID_ext_key_usage, content.usage);
  if (is_good && !content.alternative_names.empty())
    is_good = add_extension(certificate, signer, NID_subject_alt_name, content.alternative_names);
  EVP_PKEY* const key = issuer == nullptr ? out.key.get() : issuer->key.get();
  if (!is_good || X509_sign(certificate, key, EVP_sha256()) == 0)
    return library_failed("make a certificate");
  return out;
}

// All that was written into a BIO of memory.
std::string text_of(const Bio& bio) {
  char* data = nullptr;
  const long size = BIO_get_mem_data(bio.get(), &data);
  return std::string(data, static_cast<size_t>(size));
}

/// Whole or not at all, also when it was there before.
Result<void> write_file(const std::string& path, const std::string& text) {
  // What an earlier run left half written is removed.
  const std::string unfinished = path + ".new";
  ::unlink(unfinished.c_str());
  // O_EXCL: nobody has prepared a link under this name. 0600 from the start: the key is at no time
  // readable by others.
  const int file = ::open(unfinished.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
  if (file < 0) return fail(ErrorCode::kIo, "cannot make {}: {}", path, std::strerror(errno));
  const bool is_written =
      ::write(file, text.data(), text.size()) == static_cast<ssize_t>(text.size()) &&
      ::fsync(file) == 0;
  ::close(file);
  if (!is_written || ::rename(unfinished.c_str(), path.c_str()) != 0)
    return fail(ErrorCode::kIo, "cannot write {}: {}", path, std::strerror(errno));
  return {};
}

/// The key first: a node that looks in between finds a certificate that it has already.
Result<void> write_pair(const Pair& pair, const std::string& certificate_path,
                        const std::string& key_path) {
  const Bio certificate(BIO_new(BIO_s_mem())), key(BIO_new(BIO_s_mem()));
  if (PEM_write_bio_X509(certificate.get(), pair.certificate.get()) != 1 ||
      PEM_write_bio_PrivateKey(key.get(), pair.key.get(), nullptr, nullptr, 0, nullptr, nullptr) !=
          1)
    return library_failed("write a certificate");
  TETRAD_TRY_VOID(write_file(key_path, text_of(key)));
  return write_file(certificate_path, text_of(certificate));
}

// Errors: kConfig, one of the files does not read, or the key is another certificate's.
Result<Pair> read_pair(const std::string& certificate_path, const std::string& key_path) {
  const Bio certificate(BIO_new_file(certificate_path.c_str(), "r"));
  const Bio key(BIO_new_file(key_path.c_str(), "r"));
  Pair out;
  if (certificate != nullptr)
    out.certificate.reset(PEM_read_bio_X509(certificate.get(), nullptr, nullptr, nullptr));
  if (key != nullptr) out.key.reset(PEM_read_bio_PrivateKey(key.get(), nullptr, nullptr, nullptr));
  ERR_clear_error();
  if (out.certificate == nullptr || out.key == nullptr ||
      X509_check_private_key(out.certificate.get(), out.key.get()) != 1) {
    ERR_clear_error();
    return fail(ErrorCode::kConfig, "{} and {} are no certificate and its key", certificate_path,
                key_path);
  }
  return out;
}

/// "a,b" in its parts; each is an IP address or a DNS name.
Result<Content> content_of_node(const std::string& node, uint64_t days) {
  Content out{"", "", "serverAuth,clientAuth", days};
  std::istringstream parts(node);
  std::string part;
  while (std::getline(parts, part, ',')) {
    boost::system::error_code no_address;
    boost::asio::ip::make_address(part, no_address);
    // Letters, digits, hyphens and points, and not all of digits and points: that would be an
    // address.
    const bool is_name = !part.empty() && part.size() <= 253 &&
                         part.find_first_not_of(
                             "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789-.") ==
                             std::string::npos &&
                         part.find_first_not_of("0123456789.") != std::string::npos &&
                         !part.starts_with('.') && !part.starts_with('-');
    if (no_address && !is_name)
      return fail(ErrorCode::kConfig, "'{}' is neither an IP address nor a DNS name", part);
    if (out.common_name.empty()) out.common_name = part;
    out.alternative_names += fmt::format("{}{}:{}", out.alternative_names.empty() ? "" : ",",
                                         no_address ? "DNS" : "IP", part);
  }
  if (out.common_name.empty() || node.ends_with(','))
    return fail(ErrorCode::kConfig, "'{}' is no list of addresses", node);
  // The longest that a certificate takes (RFC 5280, ub-common-name); the other names say it anyway.
  if (out.common_name.size() > 64) out.common_name.resize(64);
  return out;
}

// The name is also that of the file.
Result<Content> content_of_user(const std::string& user, uint64_t days) {
  if (user.empty() || user.size() > 64 ||
      user.find_first_of(std::string_view("/\0", 2)) != std::string::npos || user.starts_with('.'))
    return fail(ErrorCode::kConfig,
                "'{}' is no name of a client: it has 1 to 64 bytes, none of them '/', and does not "
                "begin with a dot",
                user);
  return Content{user, "", "clientAuth", days};
}

// The one that is there, or a new one. One of two files alone is an error: a new key would not fit
// the certificate that nodes have.
Result<Pair> authority_in(const std::string& directory, std::vector<std::string>& made) {
  const std::string certificate = directory + "/ca.pem", key = directory + "/ca-key.pem";
  const bool has_certificate = std::filesystem::exists(certificate);
  if (has_certificate || std::filesystem::exists(key)) return read_pair(certificate, key);
  // Authorities of two clusters have two names, by which a log tells them apart.
  unsigned char number[4];
  if (RAND_bytes(number, sizeof(number)) != 1) return library_failed("draw a random number");
  const std::string name = fmt::format("Tetrad authority {:02x}{:02x}{:02x}{:02x}", number[0],
                                       number[1], number[2], number[3]);
  TETRAD_TRY(auto authority, make_pair({name, "", nullptr, kAuthorityDays}, nullptr));
  TETRAD_TRY_VOID(write_pair(authority, certificate, key));
  made.insert(made.end(), {certificate, key});
  return authority;
}

/// Of four or sixteen bytes.
std::string address_text(const unsigned char* bytes, size_t size) {
  boost::asio::ip::address_v4::bytes_type four;
  boost::asio::ip::address_v6::bytes_type sixteen;
  if (size == four.size()) {
    std::memcpy(four.data(), bytes, size);
    return boost::asio::ip::address_v4(four).to_string();
  }
  if (size != sixteen.size()) return "?";
  std::memcpy(sixteen.data(), bytes, size);
  return boost::asio::ip::address_v6(sixteen).to_string();
}

using Names = std::unique_ptr<GENERAL_NAMES, Freed<GENERAL_NAMES_free>>;

/// What the certificate in the file is good for and the new one is not; of one that does not read, nothing.
std::vector<std::string> names_lost(const std::string& path, X509* now) {
  const Bio file(BIO_new_file(path.c_str(), "r"));
  Certificate old;
  if (file != nullptr) old.reset(PEM_read_bio_X509(file.get(), nullptr, nullptr, nullptr));
  ERR_clear_error();
  std::vector<std::string> lost;
  if (old == nullptr) return lost;
  for (std::string& name : names_of(old.get())) {
    // Of a name that is no address the last answers -2.
    if (X509_check_host(now, name.data(), name.size(), 0, nullptr) != 1 &&
        X509_check_ip_asc(now, name.c_str(), 0) != 1)
      lost.push_back(std::move(name));
  }
  return lost;
}

// The folder has private keys, so it is its owner's alone; those above it are made as usual.
Result<void> make_folder(const std::string& name) {
  std::filesystem::path folder = std::filesystem::path(name).lexically_normal();
  if (!folder.has_filename()) folder = folder.parent_path();  // "certificates/"
  std::error_code failed;
  if (folder.has_parent_path()) std::filesystem::create_directories(folder.parent_path(), failed);
  if (failed)
    return fail(ErrorCode::kIo, "cannot make the folder {}: {}", folder.parent_path().string(),
                failed.message());
  if (::mkdir(folder.c_str(), 0700) != 0 && errno != EEXIST)
    return fail(ErrorCode::kIo, "cannot make the folder {}: {}", name, std::strerror(errno));
  return {};
}

}  // namespace

std::vector<std::string> names_of(const X509* certificate) {
  std::vector<std::string> out;
  const Names names(static_cast<GENERAL_NAMES*>(
      X509_get_ext_d2i(certificate, NID_subject_alt_name, nullptr, nullptr)));
  for (int i = 0; i < sk_GENERAL_NAME_num(names.get()); ++i) {
    const GENERAL_NAME* const name = sk_GENERAL_NAME_value(names.get(), i);
    if (name->type != GEN_DNS && name->type != GEN_IPADD) continue;
    const ASN1_STRING* const text = name->type == GEN_DNS ? name->d.dNSName : name->d.iPAddress;
    const unsigned char* const bytes = ASN1_STRING_get0_data(text);
    const auto size = static_cast<size_t>(ASN1_STRING_length(text));
    out.push_back(name->type == GEN_DNS ? std::string(reinterpret_cast<const char*>(bytes), size)
                                        : address_text(bytes, size));
  }
  return out;
}

Result<CertificateFiles> make_certificates(const CertificateOrder& order) {
  CertificateFiles out;
  // One certificate and where its two files go.
  struct Wanted {
    Content content;
    std::string certificate, key;
  };
  std::vector<Wanted> wanted;
  std::set<std::string> names = {"ca"};
  // Everything is checked before anything is made, so that a wrong name leaves no half of the files
  // behind.
  const auto want = [&](Content content, const std::string& name) -> Result<void> {
    if (!names.insert(name).second)
      return fail(ErrorCode::kConfig, "'{}' is named twice, or is the authority's name", name);
    const std::string path = order.directory + "/" + name;
    // A run that is repeated makes what was added to the list, and nothing else.
    if (!order.renew && std::filesystem::exists(path + ".pem")) {
      out.kept.push_back(path + ".pem");
      return {};
    }
    wanted.push_back({std::move(content), path + ".pem", path + "-key.pem"});
    return {};
  };
  for (const std::string& node : order.nodes) {
    TETRAD_TRY(auto content, content_of_node(node, order.days));
    TETRAD_TRY_VOID(want(std::move(content), node.substr(0, node.find(','))));
  }
  for (const std::string& user : order.users) {
    TETRAD_TRY(auto content, content_of_user(user, order.days));
    TETRAD_TRY_VOID(want(std::move(content), user));
  }
  TETRAD_TRY_VOID(make_folder(order.directory));
  TETRAD_TRY(const auto authority, authority_in(order.directory, out.made));
  for (const Wanted& one : wanted) {
    TETRAD_TRY(const auto pair, make_pair(one.content, &authority));
    for (const std::string& name : names_lost(one.certificate, pair.certificate.get()))
      out.lost.push_back({one.certificate, name});
    TETRAD_TRY_VOID(write_pair(pair, one.certificate, one.key));
    out.made.insert(out.made.end(), {one.certificate, one.key});
  }
  return out;
}

}  // namespace tetrad::tools
