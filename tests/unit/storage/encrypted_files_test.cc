// SPDX-License-Identifier: Apache-2.0
#include "storage/encryption/encrypted_files.h"

#include <filesystem>
#include <fstream>

#include <catch2/catch.hpp>
#include <rocksdb/file_system.h>

#include "base/random.h"
#include "storage/encryption/file_cipher.h"
#include "tests/support/hex.h"
#include "tests/support/temporary_folder.h"

namespace tetrad::storage {

namespace {

using tests::TemporaryFolder;

void count_up(std::span<uint64_t> words) {
  static uint64_t next = 1;
  for (uint64_t& word : words) word = next++ * 0x9E3779B97F4A7C15;
}
void ones(std::span<uint64_t> words) { std::ranges::fill(words, 0x0101010101010101); }

std::string line_of(const std::string& id, uint8_t first) {
  std::string line = id + " ";
  for (uint8_t i = 0; i < 32; ++i) line += base::to_hex(Bytes(1, static_cast<char>(first + i)));
  return line + "\n";
}
std::shared_ptr<const DiskKeys> keys_of(const std::string& text) {
  auto keys = DiskKeys::parse(text, "the file", count_up);
  REQUIRE(keys);
  return *keys;
}

const rocksdb::FileOptions kFile;
const rocksdb::IOOptions kIo;

void write(rocksdb::FileSystem& files, const std::string& name, const Bytes& content,
           size_t piece = 1000) {
  std::unique_ptr<rocksdb::FSWritableFile> file;
  REQUIRE(files.NewWritableFile(name, kFile, &file, nullptr).ok());
  for (size_t at = 0; at < content.size(); at += piece)
    REQUIRE(file->Append(BytesView(content).substr(at, piece), kIo, nullptr).ok());
  CHECK(file->GetFileSize(kIo, nullptr) == content.size());
  REQUIRE(file->Close(kIo, nullptr).ok());
}

Bytes read(rocksdb::FileSystem& files, const std::string& name, size_t piece = 700) {
  std::unique_ptr<rocksdb::FSSequentialFile> file;
  REQUIRE(files.NewSequentialFile(name, kFile, &file, nullptr).ok());
  Bytes out, scratch(piece, '\0');
  for (;;) {
    rocksdb::Slice got;
    REQUIRE(file->Read(piece, kIo, &got, scratch.data(), nullptr).ok());
    if (got.empty()) return out;
    out.append(got.data(), got.size());
  }
}

std::string refusal(rocksdb::FileSystem& files, const std::string& name) {
  std::unique_ptr<rocksdb::FSRandomAccessFile> file;
  const auto status = files.NewRandomAccessFile(name, kFile, &file, nullptr);
  REQUIRE_FALSE(status.ok());
  return status.ToString();
}

Bytes bytes_of(const std::string& name) {
  std::ifstream file(name, std::ios::binary);
  return {std::istreambuf_iterator<char>(file), {}};
}
void set_bytes(const std::string& name, const Bytes& bytes) {
  std::ofstream(name, std::ios::binary | std::ios::trunc) << bytes;
}

Bytes some_bytes(size_t size, uint64_t seed) {
  base::Random random(seed);
  Bytes out(size, '\0');
  for (char& c : out) c = static_cast<char>(random.next());
  return out;
}

}  // namespace

TEST_CASE("the example of a file's header is what it says") {
  // The first bytes of a header under the key "k1", of a node whose random numbers are all 01.
  const Bytes example = tests::from_hex(
      "8a54455452454e43 01 01 0002 6b31000000000000000000000000000000000000000000000000000000000000"
      "e461fb3540fcce34 010101010101010101010101"
      "26b8df409735bf110fde704bb8851a61f447ba36896253868a1a4bcde440decf"
      "12393595fd330fb9f11799ce71720244"
      "a5844497d2212d8eed6ecee0122d69d8");
  auto keys = DiskKeys::parse(line_of("k1", 1), "the file", ones);
  REQUIRE(keys);
  const auto key = open_file_header(example, **keys, "a file");
  REQUIRE(key);
  CHECK(key->secret[0] == 1);
  CHECK(key->counter[15] == 1);
  FileKey made;
  CHECK(BytesView(make_file_header(**keys, made)).starts_with(example));
  CHECK(master_key_of(example, "a file")->id == "k1");
  for (size_t i = 0; i < example.size(); ++i) {
    Bytes damaged = example;
    damaged[i] = static_cast<char>(damaged[i] ^ 4);
    CHECK_FALSE(open_file_header(damaged, **keys, "a file"));
  }
}

TEST_CASE("any part of a file is decrypted as it was encrypted") {
  const auto keys = keys_of(line_of("k", 9));
  FileKey key;
  (void)make_file_header(*keys, key);
  key.counter.fill(0xFF);  // it carries over
  const FileCipher cipher(keys, key);
  const Bytes plain = some_bytes(5000, 1);
  Bytes whole(plain.size(), '\0');
  cipher.apply(0, plain.data(), whole.data(), plain.size());
  CHECK(whole != plain);
  base::Random random(2);
  for (int i = 0; i < 300; ++i) {
    const size_t from = random.below(plain.size()), size = random.below(plain.size() - from + 1);
    Bytes part(whole.substr(from, size));
    cipher.apply(from, part.data(), part.data(), part.size());
    CHECK(part == plain.substr(from, size));
  }
}

TEST_CASE("files are written encrypted and read as they were") {
  const TemporaryFolder folder;
  const auto files = make_encrypted_files(nullptr, keys_of(line_of("k", 1)));
  const std::string name = folder.path() + "/a";
  const Bytes content = Bytes(3000, 'x') + some_bytes(9000, 3);
  write(*files, name, content);
  CHECK(read(*files, name) == content);
  CHECK(bytes_of(name).find("xxxxxxxx") == Bytes::npos);
  CHECK(bytes_of(name).size() == content.size() + kFileHeaderBytes);
  uint64_t size = 0;
  REQUIRE(files->GetFileSize(name, kIo, &size, nullptr).ok());
  CHECK(size == content.size());
  std::vector<rocksdb::FileAttributes> found;
  REQUIRE(files->GetChildrenFileAttributes(folder.path(), kIo, &found, nullptr).ok());
  for (const auto& file : found)
    if (file.name == "a") CHECK(file.size_bytes == content.size());
  std::unique_ptr<rocksdb::FSRandomAccessFile> random_file;
  REQUIRE(files->NewRandomAccessFile(name, kFile, &random_file, nullptr).ok());
  base::Random random(4);
  Bytes scratch(content.size(), '\0');
  for (int i = 0; i < 200; ++i) {
    const size_t from = random.below(content.size()), length = random.below(2000);
    rocksdb::Slice got;
    REQUIRE(random_file->Read(from, length, kIo, &got, scratch.data(), nullptr).ok());
    CHECK(got.ToString() == content.substr(from, length));
  }
  // Two files of one content have nothing in common.
  write(*files, name + "2", content);
  CHECK(bytes_of(name).substr(kFileHeaderBytes) != bytes_of(name + "2").substr(kFileHeaderBytes));
  // It is gone on with where it ended, also under another name.
  std::filesystem::create_hard_link(name, name + "3");
  REQUIRE(files->RenameFile(name, name + "4", kIo, nullptr).ok());
  std::unique_ptr<rocksdb::FSWritableFile> more;
  REQUIRE(files->ReopenWritableFile(name + "4", kFile, &more, nullptr).ok());
  REQUIRE(more->Append("more", kIo, nullptr).ok());
  REQUIRE(more->Close(kIo, nullptr).ok());
  CHECK(read(*files, name + "3") == content + "more");
  std::unique_ptr<rocksdb::FSRandomRWFile> in_place;
  CHECK(files->NewRandomRWFile(name + "4", kFile, &in_place, nullptr).IsNotSupported());
}

TEST_CASE("files of an older key are read under the newest alone when their headers are renewed") {
  const TemporaryFolder folder;
  const auto old_keys = keys_of(line_of("old", 1)), new_keys = keys_of(line_of("new", 2));
  const auto both = keys_of(line_of("new", 2) + line_of("old", 1));
  const Bytes content(10'000, 'x');
  std::filesystem::create_directory(folder.path() + "/below");
  for (const char* name : {"/a", "/below/b"})
    write(*make_encrypted_files(nullptr, old_keys), folder.path() + name, content);
  write(*make_encrypted_files(nullptr, both), folder.path() + "/new", content);
  write(*rocksdb::FileSystem::Default(), folder.path() + "/plain", content);
  const Bytes before = bytes_of(folder.path() + "/a");
  // What is damaged stays as it is, for its store to find.
  write(*make_encrypted_files(nullptr, old_keys), folder.path() + "/damaged", content);
  std::fstream damaged(folder.path() + "/damaged", std::ios::in | std::ios::out | std::ios::binary);
  damaged.seekp(70).write("damage", 6);
  damaged.close();
  const Bytes was_damaged = bytes_of(folder.path() + "/damaged");

  CHECK(renew_encrypted_files(folder.path(), *both).value() == 2);
  CHECK(renew_encrypted_files(folder.path(), *both).value() == 0);
  for (const char* name : {"/a", "/below/b", "/new"})
    CHECK(read(*make_encrypted_files(nullptr, new_keys), folder.path() + name) == content);
  CHECK(bytes_of(folder.path() + "/plain") == content);
  CHECK(bytes_of(folder.path() + "/damaged") == was_damaged);
  const Bytes after = bytes_of(folder.path() + "/a");
  REQUIRE(after.size() == before.size());
  CHECK(after.substr(kFileHeaderBytes) == before.substr(kFileHeaderBytes));
  // The nonce is another one.
  CHECK(after.substr(52, 12) != before.substr(52, 12));
  CHECK(check_encrypted_files(folder.path(), *both));
}

TEST_CASE("keys are told apart, and what lacks one says which") {
  const TemporaryFolder folder;
  const std::string name = folder.path() + "/a";
  const auto old_keys = keys_of(line_of("old", 1));
  const auto both = keys_of("# newest first\n\n" + line_of("new", 2) + line_of("old", 1));
  write(*make_encrypted_files(nullptr, old_keys), name, "content");
  CHECK(read(*make_encrypted_files(nullptr, both), name) == "content");
  write(*make_encrypted_files(nullptr, both), name + "2", "content");
  CHECK(refusal(*make_encrypted_files(nullptr, old_keys), name + "2").find("\"new\"") !=
        std::string::npos);
  CHECK(refusal(*make_encrypted_files(nullptr, nullptr), name).find("disk_encryption_key_file") !=
        std::string::npos);
  const auto other = keys_of(line_of("old", 3));
  CHECK(refusal(*make_encrypted_files(nullptr, other), name).find("another key \"old\"") !=
        std::string::npos);
  const auto counted = count_encrypted_files(folder.path());
  REQUIRE(counted);
  CHECK(counted->size() == 2);
  CHECK(counted->at("old").files == 1);
  CHECK(counted->at("new").bytes == kFileHeaderBytes + 7);
  CHECK(check_encrypted_files(folder.path(), *both));
  Bytes damaged = bytes_of(name);
  damaged[100] = static_cast<char>(damaged[100] ^ 1);
  set_bytes(name + "3", damaged);
  CHECK(check_encrypted_files(folder.path(), *both));
  CHECK(refusal(*make_encrypted_files(nullptr, both), name + "3").find("is damaged") !=
        std::string::npos);
  std::filesystem::remove(name + "3");
  CHECK(check_encrypted_files(folder.path(), *old_keys).error().code == ErrorCode::kConfig);
}

TEST_CASE("plain files stay as they are, and new ones beside them are encrypted") {
  const TemporaryFolder folder;
  const std::string name = folder.path() + "/a";
  const auto plain = make_encrypted_files(nullptr, nullptr);
  const auto files = make_encrypted_files(nullptr, keys_of(line_of("k", 1)));
  write(*plain, name, "plain content");
  CHECK(bytes_of(name) == "plain content");
  CHECK(read(*files, name) == "plain content");
  for (const char* no_rows : {"/IDENTITY", "/OPTIONS-000007", "/LOCK", "/TETRAD_FORMAT"})
    write(*plain, folder.path() + no_rows, "no rows");
  write(*plain, folder.path() + "/000004.log", "");
  CHECK(count_encrypted_files(folder.path())->at("").files == 1);
  uint64_t size = 0;
  REQUIRE(files->GetFileSize(name, kIo, &size, nullptr).ok());
  CHECK(size == 13);
  std::unique_ptr<rocksdb::FSWritableFile> more;
  REQUIRE(files->ReopenWritableFile(name, kFile, &more, nullptr).ok());
  REQUIRE(more->Append(" goes on", kIo, nullptr).ok());
  REQUIRE(more->Close(kIo, nullptr).ok());
  CHECK(bytes_of(name) == "plain content goes on");
  write(*files, name, "again");
  CHECK(bytes_of(name).size() == kFileHeaderBytes + 5);
  set_bytes(name, "");
  CHECK(read(*files, name).empty());
}

TEST_CASE("a file whose header a power cut has taken is empty") {
  const TemporaryFolder folder;
  const std::string name = folder.path() + "/a";
  const auto files = make_encrypted_files(nullptr, keys_of(line_of("k", 1)));
  write(*files, name, Bytes(500, 'a'));
  const Bytes whole = bytes_of(name);
  const auto is_empty = [&] {
    uint64_t size = 1;
    REQUIRE(files->GetFileSize(name, kIo, &size, nullptr).ok());
    return size == 0 && read(*files, name).empty();
  };
  for (const size_t left : {size_t{8}, size_t{100}, kFileHeaderUsedBytes, kFileHeaderBytes - 1}) {
    set_bytes(name, whole.substr(0, left));
    CHECK(is_empty());
  }
  set_bytes(name, whole.substr(0, kFileHeaderBytes));
  CHECK(is_empty());
  for (const size_t left : {size_t{0}, size_t{8}, size_t{64}, kFileHeaderUsedBytes - 8}) {
    set_bytes(name, whole.substr(0, left) + Bytes(kFileHeaderBytes - left, '\0') +
                        whole.substr(kFileHeaderBytes));
    CHECK(is_empty());
  }
  // It can be written anew.
  write(*files, name, "b");
  CHECK(read(*files, name) == "b");
}

TEST_CASE("a file of keys is refused by its line, never with what is in it") {
  const std::string digits = line_of("", 1).substr(1, 64);
  const auto error = [](const std::string& text) {
    const auto keys = DiskKeys::parse(text, "the file", count_up);
    REQUIRE_FALSE(keys);
    CHECK(keys.error().code == ErrorCode::kConfig);
    return keys.error().message;
  };
  CHECK(error("") == "the file has no key in it");
  CHECK(error("\n#\n k\n").starts_with("the file line 3: a line is an id"));
  CHECK(error(digits + "\n").find(digits) == std::string::npos);
  CHECK(error("k " + digits + "0\n") ==
        "the file line 1: key k has 65 characters, not 64 hexadecimal digits");
  CHECK(error("k " + digits.substr(0, 63) + "g").find("is not of hexadecimal digits") !=
        std::string::npos);
  CHECK(error("a " + digits + "\nb " + digits).find("is the same as key a") != std::string::npos);
  std::string many;
  for (int i = 0; i < 65; ++i) many += line_of("k" + std::to_string(i), static_cast<uint8_t>(i));
  CHECK(error(many) == "the file line 65: more than 64 keys");
  CHECK(DiskKeys::parse("\tk \t" + digits + "\r\n", "the file", count_up));
}

}  // namespace tetrad::storage
