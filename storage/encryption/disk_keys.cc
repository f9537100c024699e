// SPDX-License-Identifier: Apache-2.0
// The file of master keys: one line for each, "#" begins a comment. Secrets are overwritten as soon
// as they are not needed, and no message repeats one.
#include "storage/encryption/disk_keys.h"

#include <algorithm>

#include <openssl/crypto.h>
#include <openssl/evp.h>

#include "base/assert.h"
#include "base/byte_io.h"
#include "base/digest.h"
#include "base/secret.h"

namespace tetrad::storage {
namespace {

constexpr size_t kFileBytesMax = 64 << 10;
constexpr size_t kKeysMax = 64;
constexpr std::string_view kBlanks = " \t\r";

std::shared_ptr<const EVP_CIPHER> fetch(const char* name) {
  EVP_CIPHER* const cipher = EVP_CIPHER_fetch(nullptr, name, nullptr);
  TETRAD_ASSERT(cipher != nullptr);
  return {cipher, [](const EVP_CIPHER* of) { EVP_CIPHER_free(const_cast<EVP_CIPHER*>(of)); }};
}

/// The digest is of the secret, of which nobody can try all: eight bytes of it say nothing.
uint64_t fingerprint_of(const std::array<uint8_t, kDiskKeyBytes>& secret) {
  std::string text = "tetrad disk key";
  text.append(reinterpret_cast<const char*>(secret.data()), secret.size());
  const auto digest = base::digest_named("SHA-256", text);
  OPENSSL_cleanse(text.data(), text.size());
  TETRAD_ASSERT(digest.has_value());
  return base::load_big_endian<uint64_t>(digest->data());
}

int digit_of(char c) {
  if (c >= '0' && c <= '9') return c - '0';
  if (c >= 'a' && c <= 'f') return c - 'a' + 10;
  if (c >= 'A' && c <= 'F') return c - 'A' + 10;
  return -1;
}

bool is_id(std::string_view id) {
  const auto fits = [](char c) {
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_' ||
           c == '-' || c == '.';
  };
  return !id.empty() && id.size() <= kDiskKeyIdMax && std::ranges::all_of(id, fits);
}

std::string_view trimmed(std::string_view text) {
  const size_t from = text.find_first_not_of(kBlanks);
  if (from == std::string_view::npos) return {};
  return text.substr(from, text.find_last_not_of(kBlanks) - from + 1);
}

/// `where`: file and line. What the line holds is a secret: no message repeats it.
Result<DiskKey> key_of(std::string_view line, const std::string& where) {
  const size_t id_end = line.find_first_of(kBlanks);
  const std::string_view id = line.substr(0, id_end);
  const std::string_view digits = trimmed(line.substr(std::min(id_end, line.size())));
  if (!is_id(id) || digits.empty())
    return fail(ErrorCode::kConfig,
                "{}: a line is an id of up to {} letters, digits and \"_-.\", a blank, and a key",
                where, kDiskKeyIdMax);
  DiskKey key{std::string(id), {}, 0};
  if (digits.size() != 2 * kDiskKeyBytes)
    return fail(ErrorCode::kConfig, "{}: key {} has {} characters, not {} hexadecimal digits",
                where, id, digits.size(), 2 * kDiskKeyBytes);
  for (size_t i = 0; i < kDiskKeyBytes; ++i) {
    const int high = digit_of(digits[2 * i]), low = digit_of(digits[2 * i + 1]);
    if (high < 0 || low < 0)
      return fail(ErrorCode::kConfig, "{}: key {} is not of hexadecimal digits", where, id);
    key.secret[i] = static_cast<uint8_t>(high << 4 | low);
  }
  // A key that was never filled in, such as 64 zeros.
  if (std::ranges::count(key.secret, key.secret[0]) == static_cast<int64_t>(kDiskKeyBytes))
    return fail(ErrorCode::kConfig, "{}: key {} is one byte {} times, which anybody can guess",
                where, id, kDiskKeyBytes);
  key.fingerprint = fingerprint_of(key.secret);
  return key;
}

}  // namespace

Result<std::shared_ptr<const DiskKeys>> DiskKeys::read(const std::string& path,
                                                       base::Random::Source random) {
  base::SecretText secret;
  TETRAD_TRY_VOID(base::read_secret_file(path, kFileBytesMax, "keys", secret));
  return parse(secret.text, path, random);
}

Result<std::shared_ptr<const DiskKeys>> DiskKeys::parse(std::string_view text,
                                                        const std::string& path,
                                                        base::Random::Source random) {
  std::vector<DiskKey> keys;
  int line_number = 0;
  while (!text.empty()) {
    const size_t end = std::min(text.find('\n'), text.size());
    const std::string_view line = trimmed(text.substr(0, end));
    text.remove_prefix(std::min(end + 1, text.size()));
    const std::string where = fmt::format("{} line {}", path, ++line_number);
    if (line.empty() || line[0] == '#') continue;
    TETRAD_TRY(DiskKey key, key_of(line, where));
    // Two names for one secret would look like a change of keys that is none.
    for (const DiskKey& other : keys) {
      if (other.id == key.id)
        return fail(ErrorCode::kConfig, "{}: there is a key {} already", where, key.id);
      if (other.secret == key.secret)
        return fail(ErrorCode::kConfig, "{}: key {} is the same as key {}", where, key.id,
                    other.id);
    }
    if (keys.size() == kKeysMax)
      return fail(ErrorCode::kConfig, "{}: more than {} keys", where, kKeysMax);
    keys.push_back(std::move(key));
  }
  if (keys.empty()) return fail(ErrorCode::kConfig, "{} has no key in it", path);
  return std::shared_ptr<const DiskKeys>(new DiskKeys(path, std::move(keys), random));
}

DiskKeys::DiskKeys(std::string path, std::vector<DiskKey> keys, base::Random::Source random)
    : path_(std::move(path)),
      keys_(std::move(keys)),
      random_(random),
      stream_(fetch("AES-256-CTR")),
      wrap_(fetch("AES-256-GCM")) {
  TETRAD_ASSERT(!keys_.empty());
  TETRAD_ASSERT(random_ != nullptr);
}

DiskKeys::~DiskKeys() {
  for (DiskKey& key : keys_) OPENSSL_cleanse(key.secret.data(), key.secret.size());
}

const DiskKey* DiskKeys::find(std::string_view id) const {
  const auto found = std::ranges::find(keys_, id, &DiskKey::id);
  return found == keys_.end() ? nullptr : &*found;
}

void DiskKeys::draw(uint8_t* bytes, size_t size) const {
  std::array<uint64_t, 16> words{};
  TETRAD_ASSERT(size <= sizeof(words));
  random_(words);
  std::memcpy(bytes, words.data(), size);
  OPENSSL_cleanse(words.data(), sizeof(words));
}

}  // namespace tetrad::storage
