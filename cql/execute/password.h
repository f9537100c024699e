// SPDX-License-Identifier: Apache-2.0
// Passwords as salted hashes of bcrypt, as Cassandra keeps them, so that a hash of one works in the
// other. Functions that hash take tens of milliseconds: never on the loop.
#pragma once

#include <string>
#include <string_view>

#include "base/bytes.h"
#include "base/random.h"
#include "base/result.h"

namespace tetrad::cql {

/// 2 to this power rounds.
inline constexpr int kBcryptCost = 10;
/// Of a hash that was made elsewhere: one of the highest cost would keep a thread for hours.
inline constexpr int kBcryptCostMax = 14;

/// Whether it has the form that is taken: "$2a$", two digits, "$", 53 letters.
/// Errors: kInvalid.
Result<void> check_hashed_password(std::string_view hash);
/// The salt of a new hash.
std::string new_salt(base::Random& random);
/// Errors: kInvalid for a password with a NUL character, which bcrypt would end at.
Result<std::string> hash_password(std::string_view password, const std::string& salt);
/// In the time that the hash takes, whatever the password is. False for what is no hash.
bool is_password_of(std::string_view password, const std::string& hash);
/// Some hash, of no password: checked in place of one that is not there, so that the time does not
/// tell which roles there are.
const std::string& hash_of_nobody();
/// What of a statement may stand in traces and logs: its text up to the first word "password", in
/// any case, behind which a secret may follow.
BytesView up_to_password(BytesView statement);

}  // namespace tetrad::cql
