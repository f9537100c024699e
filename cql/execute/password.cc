// SPDX-License-Identifier: Apache-2.0
#include "cql/execute/password.h"

#include <algorithm>
#include <array>
#include <crypt.h>
#include <memory>

namespace tetrad::cql {
namespace {

constexpr std::string_view kPrefix = "$2a$";
constexpr size_t kSaltBytes = 16, kHashSize = 60;

/// What crypt makes of it; empty on failure.
std::string crypted(std::string_view password, const std::string& setting) {
  const auto work = std::make_unique<crypt_data>();
  const std::string ended(password);
  const char* const out = crypt_rn(ended.c_str(), setting.c_str(), work.get(), sizeof(crypt_data));
  std::string result = out == nullptr ? "" : out;
  explicit_bzero(work.get(), sizeof(crypt_data));
  return result;
}

/// Looks at every byte, wherever the first difference is.
bool are_equal(std::string_view a, std::string_view b) {
  if (a.size() != b.size()) return false;
  unsigned differences = 0;
  for (size_t i = 0; i < a.size(); ++i)
    differences |= static_cast<unsigned char>(a[i]) ^ static_cast<unsigned char>(b[i]);
  return differences == 0;
}

bool is_digit(char letter) { return letter >= '0' && letter <= '9'; }

bool is_bcrypt_letter(char letter) {
  return is_digit(letter) || (letter >= 'a' && letter <= 'z') || (letter >= 'A' && letter <= 'Z') ||
         letter == '.' || letter == '/';
}

}  // namespace

Result<void> check_hashed_password(std::string_view hash) {
  const bool is_bcrypt = hash.size() == kHashSize && hash.starts_with(kPrefix) &&
                         is_digit(hash[4]) && is_digit(hash[5]) && hash[6] == '$' &&
                         std::ranges::all_of(hash.substr(7), is_bcrypt_letter);
  if (!is_bcrypt)
    return fail(ErrorCode::kInvalid, "Invalid hashed password value. Please use jBcrypt.");
  const int cost = (hash[4] - '0') * 10 + (hash[5] - '0');
  if (cost < 4 || cost > kBcryptCostMax)
    return fail(ErrorCode::kInvalid,
                "Invalid hashed password value: its cost is {}, which must be from 4 to {}", cost,
                kBcryptCostMax);
  return {};
}

std::string new_salt(base::Random& random) {
  std::array<char, kSaltBytes> bytes{};
  for (char& byte : bytes) byte = static_cast<char>(random.next());
  char out[CRYPT_GENSALT_OUTPUT_SIZE] = {};
  const char* const salt = crypt_gensalt_rn(kPrefix.data(), kBcryptCost, bytes.data(),
                                            static_cast<int>(bytes.size()), out, sizeof(out));
  return salt == nullptr ? "" : salt;
}

Result<std::string> hash_password(std::string_view password, const std::string& salt) {
  if (password.find('\0') != std::string_view::npos)
    return fail(ErrorCode::kInvalid, "A password has no NUL character");
  std::string hash = crypted(password, salt);
  if (hash.size() != kHashSize)
    return fail(ErrorCode::kServerError, "bcrypt is not to be had on this machine");
  return hash;
}

bool is_password_of(std::string_view password, const std::string& hash) {
  if (password.find('\0') != std::string_view::npos || hash.size() != kHashSize) return false;
  return are_equal(crypted(password, hash), hash);
}

const std::string& hash_of_nobody() {
  static const std::string hash = "$2a$10$......................" + std::string(31, '.');
  return hash;
}

BytesView up_to_password(BytesView statement) {
  constexpr std::string_view kWord = "password";
  const auto found = std::ranges::search(
      statement, kWord, [](char letter, char of_word) { return (letter | 0x20) == of_word; });
  return statement.substr(0, static_cast<size_t>(found.end() - statement.begin()));
}

}  // namespace tetrad::cql
