// SPDX-License-Identifier: Apache-2.0
// Passwords as salted hashes. New ones are of argon2id, which needs memory, and so is dear to guess on
// hardware made for it; those of bcrypt, as Cassandra keeps them, work as they are. Functions that hash
// take tens of milliseconds and 19 MiB: never on the loop, and few at a time.
//
//   argon2id := "$argon2id$v=19$m=" KiB ",t=" passes ",p=" lanes "$" salt "$" hash, both in base64
//   bcrypt   := "$2a$", two digits, "$", 53 letters
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
/// OWASP's least of 2024: 20 to 30 ms on one core.
inline constexpr uint32_t kArgonMemoryKib = 19 * 1024, kArgonPasses = 2;
/// Of a hash that was made elsewhere.
inline constexpr uint32_t kArgonMemoryKibMax = 64 * 1024, kArgonPassesMax = 8, kArgonLanesMax = 8;

/// Which hash is made.
enum class PasswordHash { kBcrypt, kArgon2id };

/// Whether it is of a form that is taken, and may be checked in bounded time and memory.
/// Errors: kInvalid.
Result<void> check_hashed_password(std::string_view hash);
/// The salt of a new hash, which says of which kind.
std::string new_salt(base::Random& random, PasswordHash kind);
/// Errors: kInvalid for a password with a NUL character, which bcrypt would end at; kServerError: there is
/// no memory.
Result<std::string> hash_password(std::string_view password, const std::string& salt);
/// In the time that the hash takes, whatever the password is. False for what is no hash, and without
/// memory.
bool is_password_of(std::string_view password, const std::string& hash);
/// Some hash, of no password: checked in place of one that is not there, so that the time does not
/// tell which roles there are.
const std::string& hash_of_nobody();
/// What of a statement that was understood may stand in the audit log: its text up to the first word
/// "password", in any case, behind which a secret may follow.
BytesView up_to_password(BytesView statement);
/// What of any text may stand in traces and logs. Of what may be meant for a statement about roles,
/// misspelt or not, that ends before the first value, too: the word may be misspelt as well.
BytesView up_to_secret(BytesView statement);

}  // namespace tetrad::cql
