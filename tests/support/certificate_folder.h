// SPDX-License-Identifier: Apache-2.0
// A folder with an authority and what it has signed, for tests that speak TLS.
#pragma once

#include <string>
#include <utility>
#include <vector>

#include <catch2/catch.hpp>

#include "base/tls_context.h"
#include "tests/support/temporary_folder.h"
#include "tools/tetractl/certificates.h"

namespace tetrad::tests {

/// Made with its certificates, and removed with all that is in it.
class CertificateFolder {
 public:
  /// As CertificateOrder has them: a node by its address, or several of its names with commas.
  explicit CertificateFolder(std::vector<std::string> nodes = {"127.0.0.1"},
                             std::vector<std::string> users = {}) {
    tools::CertificateOrder order;
    order.directory = path();
    order.nodes = std::move(nodes);
    order.users = std::move(users);
    REQUIRE(tools::make_certificates(order));
  }
  const std::string& path() const { return folder_.path(); }
  std::string file(const std::string& name) const { return path() + "/" + name; }
  /// Those of a node or a user.
  base::TlsFiles of(const std::string& name) const {
    return {file(name + ".pem"), file(name + "-key.pem"), file("ca.pem")};
  }
  base::TlsFiles node() const { return of("127.0.0.1"); }

 private:
  TemporaryFolder folder_;
};

}  // namespace tetrad::tests
