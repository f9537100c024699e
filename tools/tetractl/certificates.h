// SPDX-License-Identifier: Apache-2.0
// A private authority for a cluster, and certificates that it signs: for nodes and for clients.
#pragma once

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include <openssl/types.h>

#include "base/result.h"

namespace tetrad::tools {

/// What `tetractl certificates` is to make, and where.
/// Example: nodes {"10.0.0.1,node1.example"} makes 10.0.0.1.pem, good for both names.
struct CertificateOrder {
  std::string directory;           // made if absent, for its owner only
  std::vector<std::string> nodes;  // each its addresses and names, with commas between
  std::vector<std::string> users;  // names of clients
  // The longest that some clients take of a certificate.
  uint64_t days = 825;  // that certificates hold; the authority's holds ten years
  bool renew = false;   // make those anew that are there
};

/// Paths of files.
/// What was made is printed, and what was kept is said, so that a script can be run again.
struct CertificateFiles {
  std::vector<std::string> made;
  std::vector<std::string> kept;  // certificates that were there
  /// Certificates, each with a name or address that it is not good for any more.
  std::vector<std::pair<std::string, std::string>> lost;
};

/// Makes `ca.pem` and `ca-key.pem` unless they are there, and for each node and client NAME.pem and
/// NAME-key.pem; of a node NAME is its first address. Nobody but the owner may read keys. What is
/// there is kept unless `renew`. Errors: kConfig, and then nothing was made of what is asked for
/// wrongly; kIo.
/// The folder's key ca-key.pem can make nodes of the cluster: it belongs on no node.
Result<CertificateFiles> make_certificates(const CertificateOrder& order);

/// Names and addresses that the certificate is good for, as it lists them; other kinds are left out.
std::vector<std::string> names_of(const X509* certificate);

}  // namespace tetrad::tools
