// SPDX-License-Identifier: Apache-2.0
// There is no default password: a node makes the first superuser when the operator asks for one.
//
// Cassandra begins with the role cassandra and a password that everybody knows. Here a cluster
// without a superuser is one that nobody can administer, until a node is started with
// --init-superuser.
#pragma once

#include <string>

#include "base/log.h"
#include "base/random.h"
#include "base/reactor.h"
#include "base/task.h"
#include "cql/execute/query_processor.h"
#include "replication/meta/meta_service.h"

namespace tetrad::server {

/// Whom to make.
struct FirstSuperuser {
  std::string name;
  std::string password;
  bool was_made_up = false;  // the password: it is printed once
  bool replaces = false;     // also where a superuser can log in
};

/// The password from the file, else from the environment, else made up of `random`, which nobody
/// can foresee. Errors: kConfig, the file does not read, others than its owner may read it, or its
/// first line is empty.
Result<FirstSuperuser> first_superuser(const std::string& name, const std::string& password_file,
                                       base::Random& random);

/// Makes the role, or makes it a superuser who can log in with that password, unless there is such
/// a one and `replaces` is not set. Tries again until that is so. All references outlive the task.
Task<void> make_first_superuser(FirstSuperuser whom, base::Reactor& reactor, base::Random& random,
                                cql::QueryProcessor& processor, replication::MetaService& meta,
                                Logger logger);

}  // namespace tetrad::server
