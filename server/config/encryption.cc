// SPDX-License-Identifier: Apache-2.0
// Sentences are what --help and conf/tetrad.yaml show. Which options need which is checked by
// open_node_tls() (server/node_tls.cc).
#include "server/config/encryption.h"

namespace tetrad::server {

void append_encryption_options(std::vector<OptionEntry>& table) {
  const auto add = [&](const char* name, OptionEntry::Target target, const char* sentence) {
    table.push_back({name, target, 0, 0, {}, sentence});
  };
  add("client_encryption_enabled", &Options::client_encryption_enabled,
      "Clients speak TLS (1.3 or 1.2) on the native port.");
  add("client_encryption_optional", &Options::client_encryption_optional,
      "Clients may also go without TLS on the same port: until all of them are configured for it.");
  add("client_encryption_certificate_file", &Options::client_encryption_certificate_file,
      "The node's certificate for clients in PEM form, then those between it and its authority. "
      "Read again when it changes, as the other two files.");
  add("client_encryption_key_file", &Options::client_encryption_key_file,
      "The key of that certificate in PEM form, without a passphrase.");
  add("client_encryption_ca_file", &Options::client_encryption_ca_file,
      "Certificates in PEM form of the authorities that sign the certificates of clients; empty: "
      "clients are not asked for one.");
  add("client_encryption_require_client_auth", &Options::client_encryption_require_client_auth,
      "Clients must show a certificate that an authority of client_encryption_ca_file has signed.");
  table.push_back(
      {"client_certificate_identity",
       &Options::client_certificate_identity,
       0,
       0,
       {"none", "common_name", "alternative_name"},
       "A client whose certificate has the name of a role that may log in is that role, without a "
       "password: the subject's common name, or one of its alternative names (URI, e-mail, DNS). "
       "Others log in."});
  add("admin_encryption_enabled", &Options::admin_encryption_enabled,
      "The admin port speaks HTTPS, with the certificate of client_encryption_certificate_file; "
      "tetractl is then given --ca-file.");
  table.push_back(
      {"internode_encryption",
       &Options::internode_encryption,
       0,
       0,
       {"none", "optional", "all"},
       "all: nodes speak TLS with each other, and take only nodes with a certificate that the "
       "authority of the cluster has signed; optional: they try TLS first and take both, for the "
       "time in which a running cluster changes over."});
  add("internode_encryption_certificate_file", &Options::internode_encryption_certificate_file,
      "The node's certificate for other nodes in PEM form, good for servers and clients.");
  add("internode_encryption_key_file", &Options::internode_encryption_key_file,
      "The key of that certificate in PEM form, without a passphrase.");
  add("internode_encryption_ca_file", &Options::internode_encryption_ca_file,
      "The certificate in PEM form of the authority that signs those of the cluster's nodes, and "
      "of nobody else's servers.");
  add("cluster_secret_file", &Options::cluster_secret_file,
      "A file with 16 bytes or more, the same for all nodes, that its owner alone may read: nodes "
      "that do not speak TLS prove to each other that they have it, and take no others. It "
      "encrypts "
      "nothing. Empty: whoever reaches the port is taken for a node.");
  add("cluster_secret_required", &Options::cluster_secret_required,
      "false: nodes without the secret, or with another one, are taken, too: for the time in which "
      "the nodes of a running cluster are given it, or another one.");
}

}  // namespace tetrad::server
