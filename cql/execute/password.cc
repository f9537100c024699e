// SPDX-License-Identifier: Apache-2.0
// Two kinds of hashes, told apart by how the text begins:
//
// - `$2a$…`, bcrypt as Cassandra writes it, 60 characters: 7 of prefix and cost, 22 of salt, 31 of
//   hash. Hashes that come from a Cassandra cluster keep their value.
// - `$argon2id$v=19$m=KIB,t=PASSES,p=LANES$SALT$HASH`, what this program makes once all nodes know
//   it.
//
// hash_password() and is_password_of() take long by design: call them off the loop. Costs in a hash
// have upper bounds, as HASHED PASSWORD comes from a client: otherwise a hash could ask for any
// memory and time with each login.
#include "cql/execute/password.h"

#include <algorithm>
#include <argon2.h>
#include <array>
#include <charconv>
#include <crypt.h>
#include <memory>

namespace tetrad::cql {
namespace {

constexpr std::string_view kPrefix = "$2a$";
constexpr size_t kSaltBytes = 16, kHashSize = 60;
constexpr std::string_view kArgonPrefix = "$argon2id$";
constexpr size_t kArgonHashBytes = 32, kArgonTextMax = 256;

/// What crypt makes of it; empty on failure.
std::string crypted(std::string_view password, const std::string& setting) {
  const auto work = std::make_unique<crypt_data>();
  const std::string ended(password);
  const char* const out = crypt_rn(ended.c_str(), setting.c_str(), work.get(), sizeof(crypt_data));
  std::string result = out == nullptr ? "" : out;
  // It holds what was computed of the password.
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

bool is_base64_letter(char letter) {
  return is_digit(letter) || (letter >= 'a' && letter <= 'z') || (letter >= 'A' && letter <= 'Z') ||
         letter == '+' || letter == '/';
}

/// Takes "m=19456" and what ends it off the text.
std::optional<uint32_t> take_number(std::string_view& text, std::string_view name, char end) {
  if (!text.starts_with(name)) return std::nullopt;
  text.remove_prefix(name.size());
  uint32_t value = 0;
  const auto [stop, status] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (status != std::errc() || stop == text.data() + text.size() || *stop != end)
    return std::nullopt;
  text.remove_prefix(static_cast<size_t>(stop - text.data()) + 1);
  return value;
}

Result<void> check_argon2id(std::string_view hash) {
  std::string_view rest = hash.substr(kArgonPrefix.size());
  const auto version = take_number(rest, "v=", '$');
  const auto memory = take_number(rest, "m=", ',');
  const auto passes = take_number(rest, "t=", ',');
  const auto lanes = take_number(rest, "p=", '$');
  const size_t salt_end = std::min(rest.find('$'), rest.size());
  const std::string_view salt = rest.substr(0, salt_end);
  const std::string_view sum = rest.substr(std::min(salt_end + 1, rest.size()));
  // 8 to 48 bytes of salt, 16 to 64 of hash.
  const bool has_form = version && memory && passes && lanes && salt.size() >= 11 &&
                        salt.size() <= 64 && sum.size() >= 22 && sum.size() <= 86 &&
                        std::ranges::all_of(salt, is_base64_letter) &&
                        std::ranges::all_of(sum, is_base64_letter);
  if (!has_form || *version != 19)
    return fail(ErrorCode::kInvalid,
                "Invalid hashed password value: not of the form "
                "$argon2id$v=19$m=KIB,t=PASSES,p=LANES$SALT$HASH");
  if (*lanes < 1 || *lanes > kArgonLanesMax || *passes < 1 || *passes > kArgonPassesMax ||
      *memory < 8 * *lanes || *memory > kArgonMemoryKibMax)
    return fail(ErrorCode::kInvalid,
                "Invalid hashed password value: m={},t={},p={}; at most m={},t={},p={}, and m at "
                "least 8 for each of p",
                *memory, *passes, *lanes, kArgonMemoryKibMax, kArgonPassesMax, kArgonLanesMax);
  return {};
}

Result<std::string> hash_by_argon2id(std::string_view password, std::string_view salt) {
  std::array<char, kArgonTextMax> encoded{};
  const int status = argon2id_hash_encoded(kArgonPasses, kArgonMemoryKib, 1, password.data(),
                                           password.size(), salt.data(), salt.size(),
                                           kArgonHashBytes, encoded.data(), encoded.size());
  if (status != ARGON2_OK)
    return fail(ErrorCode::kServerError, "the password is not hashed: {}",
                argon2_error_message(status));
  return std::string(encoded.data());
}

}  // namespace

Result<void> check_hashed_password(std::string_view hash) {
  if (hash.starts_with(kArgonPrefix)) return check_argon2id(hash);
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

std::string new_salt(base::Random& random, PasswordHash kind) {
  std::array<char, kSaltBytes> bytes{};
  for (char& byte : bytes) byte = static_cast<char>(random.next());
  if (kind == PasswordHash::kArgon2id)
    return std::string(kArgonPrefix) + std::string(bytes.data(), bytes.size());
  char out[CRYPT_GENSALT_OUTPUT_SIZE] = {};
  const char* const salt = crypt_gensalt_rn(kPrefix.data(), kBcryptCost, bytes.data(),
                                            static_cast<int>(bytes.size()), out, sizeof(out));
  return salt == nullptr ? "" : salt;
}

Result<std::string> hash_password(std::string_view password, const std::string& salt) {
  if (password.find('\0') != std::string_view::npos)
    return fail(ErrorCode::kInvalid, "A password has no NUL character");
  // A salt for Argon2id is the prefix and 16 raw bytes; one for bcrypt is crypt's setting.
  if (salt.starts_with(kArgonPrefix))
    return hash_by_argon2id(password, std::string_view(salt).substr(kArgonPrefix.size()));
  std::string hash = crypted(password, salt);
  if (hash.size() != kHashSize)
    return fail(ErrorCode::kServerError, "bcrypt is not to be had on this machine");
  return hash;
}

bool is_password_of(std::string_view password, const std::string& hash) {
  // crypt takes a C string: what follows NUL would not be checked.
  if (password.find('\0') != std::string_view::npos) return false;
  if (hash.starts_with(kArgonPrefix))
    // Costs again: the hash may be of a program without these bounds.
    return check_argon2id(hash).has_value() &&
           argon2id_verify(hash.c_str(), password.data(), password.size()) == ARGON2_OK;
  if (hash.size() != kHashSize) return false;
  return are_equal(crypted(password, hash), hash);
}

const std::string& hash_of_nobody() {
  static const std::string hash =
      fmt::format("{}v=19$m={},t={},p=1${}${}", kArgonPrefix, kArgonMemoryKib, kArgonPasses,
                  std::string(22, 'A'), std::string(43, 'A'));
  return hash;
}

BytesView up_to_password(BytesView statement) {
  constexpr std::string_view kWord = "password";
  const auto found = std::ranges::search(
      statement, kWord, [](char letter, char of_word) { return (letter | 0x20) == of_word; });
  return statement.substr(0, static_cast<size_t>(found.end() - statement.begin()));
}

namespace {

/// Splits off words of letters, over white space and comments.
class Words {
 public:
  explicit Words(BytesView text) : text_(text) {}

  /// In small letters; "" where no word comes next.
  std::string next() {
    skip_space();
    std::string word;
    for (; at_ < text_.size() && is_letter(text_[at_]); ++at_)
      word += static_cast<char>(text_[at_] | 0x20);
    return word;
  }
  bool at_end() const { return at_ >= text_.size(); }
  void skip_space() {
    while (at_ < text_.size()) {
      const BytesView rest = text_.substr(at_);
      if (rest.starts_with("/*")) {
        const size_t end = rest.find("*/", 2);
        at_ = end == BytesView::npos ? text_.size() : at_ + end + 2;
      } else if (rest.starts_with("--") || rest.starts_with("//")) {
        const size_t end = rest.find_first_of("\r\n");
        at_ = end == BytesView::npos ? text_.size() : at_ + end;
      } else if (BytesView(" \t\r\n\f\v").find(rest.front()) != BytesView::npos) {
        ++at_;
      } else {
        return;
      }
    }
  }

 private:
  static bool is_letter(char c) { return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z'); }
  const BytesView text_;
  size_t at_ = 0;
};

constexpr BytesView kNameLetters =
    "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_.";

constexpr bool is_one_of(std::string_view word, std::initializer_list<std::string_view> words) {
  return std::ranges::find(words, word) != words.end();
}

/// Whether the first words are those of a statement that has values, and no password in it.
bool has_no_secret(BytesView statement) {
  Words words(statement);
  std::string first = words.next();
  if (first == "explain") first = words.next();
  std::string second = words.next();
  if (is_one_of(first, {"select", "insert", "update", "delete"}))
    return first == "select" || !is_one_of(second, {"role", "user"});
  if (first == "begin") return is_one_of(second, {"batch", "unlogged", "counter"});
  if (second == "or" && words.next() == "replace") second = words.next();
  return is_one_of(first, {"create", "alter"}) &&
         is_one_of(second, {"table", "columnfamily", "keyspace", "schema", "type", "index",
                            "custom", "function", "materialized", "aggregate"});
}

/// But white space and comments.
bool has_nothing(BytesView text) {
  Words words(text);
  words.skip_space();
  return words.at_end();
}

/// Its first statement: what follows is taken by nobody, and may be anything. A batch goes on to
/// its end, unless something that is no part of one is in it.
BytesView first_statement(BytesView text) {
  const bool is_batch = Words(text).next() == "begin";
  for (size_t at = 0; at < text.size(); ++at) {
    const BytesView rest = text.substr(at);
    if (rest[0] == ';') {
      if (has_nothing(rest.substr(1))) return text;
      if (!is_batch ||
          !is_one_of(Words(rest.substr(1)).next(), {"insert", "update", "delete", "apply", ""}))
        return text.substr(0, at + 1);
      continue;
    }
    // The halves of what a doubled quote is in are skipped one after the other.
    const BytesView quote = rest[0] == '\'' || rest[0] == '"' ? rest.substr(0, 1)
                            : rest.starts_with("$$")          ? BytesView("$$")
                                                              : BytesView();
    if (quote.empty()) continue;
    const size_t closed = text.find(quote, at + quote.size());
    if (closed == BytesView::npos) return text;
    at = closed + quote.size() - 1;
  }
  return text;
}

}  // namespace

BytesView up_to_secret(BytesView statement) {
  const BytesView open = first_statement(up_to_password(statement));
  if (has_no_secret(open)) return open;
  // The verb, the kind of object, a name.
  constexpr int kWordsShown = 3;
  size_t shown = 0, begin = 0;
  for (int i = 0; i < kWordsShown && begin < open.size(); ++i) {
    if (open[begin] == ' ') ++begin;
    const size_t end = std::min(open.find_first_not_of(kNameLetters, begin), open.size());
    if (end == begin) break;
    shown = begin = end;
  }
  return open.substr(0, shown);
}

}  // namespace tetrad::cql
