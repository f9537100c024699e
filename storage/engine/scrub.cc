// SPDX-License-Identifier: Apache-2.0
// How files are read for their checksums.
//
//   1. The place in the store says which file was the last; the round waits until that one's pause
//      is over.
//   2. The next file by number is read whole on a maintenance thread, straight from the disk, and
//      the place is written. If that fails for another reason than corruption, once more through
//      the cache.
//   3. A block that does not read makes the store damaged, if the file is still in use by then.
//   4. The pause after a file is its part of the period by its bytes. Behind the last file the
//      round begins anew.
#include "storage/engine/scrub.h"

#include <algorithm>
#include <vector>

#include <rocksdb/db.h>
#include <rocksdb/metadata.h>
#include <rocksdb/sst_file_reader.h>
#include <rocksdb/table.h>

#include "base/assert.h"
#include "base/byte_io.h"
#include "base/data_mutants.h"
#include "base/guarded.h"
#include "storage/engine/rocks_status.h"
#include "storage/row/storage_key.h"

namespace tetrad::storage {
namespace {

constexpr int64_t kLongestWaitUs = int64_t{3600} * 1'000'000;  // then it is looked again
constexpr int64_t kTryAgainUs = 60'000'000;

Bytes place_key() {
  Bytes key;
  base::ByteWriter w(key);
  w.u32(kStoreIncarnation.value);
  w.raw("scrub");
  return key;
}

/// Straight from the disk, where the file system can, and past the block cache: the page cache may
/// have a better copy than the disk, and each checksum is to be of what the disk gives.
rocksdb::Status read_all(const rocksdb::DB& db, const std::string& file, bool direct) {
  rocksdb::Options options = db.GetOptions();
  rocksdb::BlockBasedTableOptions table;
  table.no_block_cache = true;
  options.table_factory.reset(rocksdb::NewBlockBasedTableFactory(table));
  options.use_direct_reads = direct;
  options.listeners.clear();
  rocksdb::SstFileReader reader(options);
  rocksdb::Status status = reader.Open(file);
  rocksdb::ReadOptions read;
  read.readahead_size = 1 << 20;
  if (status.ok()) status = reader.VerifyChecksum(read);
  return status;
}

/// Files that are there now, by number.
std::vector<rocksdb::LiveFileMetaData> files_of(rocksdb::DB& db) {
  std::vector<rocksdb::LiveFileMetaData> files;
  db.GetLiveFilesMetaData(&files);
  std::ranges::sort(files, {}, &rocksdb::LiveFileMetaData::file_number);
  return files;
}

bool is_live(rocksdb::DB& db, uint64_t number) {
  const auto files = files_of(db);
  return std::ranges::find(files, number, &rocksdb::LiveFileMetaData::file_number) != files.end();
}

// What reading throws is a failure of the reading, not damage of the file.
template <class Page, class Read>
Page page_of(Read read) {
  Result<Page> page =
      base::guarded("the scrub of a file", [&]() -> Result<Page> { return read(); });
  if (page) return std::move(*page);
  Page failed;
  failed.failure = std::move(page.error());
  return failed;
}

}  // namespace

Bytes ScrubPlace::encode() const {
  Bytes out;
  base::ByteWriter w(out);
  w.u64(file);
  w.i64(at_us);
  w.u64(bytes);
  return out;
}

ScrubPlace ScrubPlace::decode(BytesView encoded) {
  base::ByteReader in(encoded);
  ScrubPlace place;
  place.file = in.read_u64().value_or(0);
  place.at_us = in.read_i64().value_or(0);
  place.bytes = in.read_u64().value_or(0);
  return place;
}

struct Scrub::Page {
  bool is_done = false;  // there was none after it
  ScrubPlace place;
  uint64_t files_left = 0, bytes_left = 0, total_bytes = 0;  // behind this one; of all
  std::string damage;
  std::optional<Error> failure;  // it could not be read, for a reason that is not the file's
};

struct Scrub::Round {
  uint64_t after = 0;
  ScrubSummary summary;
  std::move_only_function<void(Result<ScrubSummary>)> done;
};

/// On a maintenance thread.
Scrub::Page Scrub::read_next(RocksDatabase& database, uint64_t after, bool keep_place,
                             int64_t now_us, bool only_place) {
  rocksdb::DB& db = database.db();
  Page page;
  // Where the last life was; no file is read.
  if (only_place) {
    std::string text;
    if (!db.Get(rocksdb::ReadOptions(), rocksdb::Slice(place_key()), &text).ok()) return page;
    page.place = ScrubPlace::decode(text);
    for (const auto& file : files_of(db)) page.total_bytes += file.size;
    return page;
  }
  const auto files = files_of(db);
  // By number, so that files that are made meanwhile come at the end of the round or in the next
  // one.
  const auto next =
      std::ranges::upper_bound(files, after, {}, [](const auto& file) { return file.file_number; });
  for (const auto& file : files) page.total_bytes += file.size;
  if (next == files.end()) {
    page.is_done = true;
    return page;
  }
  for (auto it = next + 1; it != files.end(); ++it) {
    ++page.files_left;
    page.bytes_left += it->size;
  }
  page.place = {next->file_number, now_us, next->size};
  const std::string path = next->db_path + "/" + next->relative_filename;
  rocksdb::Status read = read_all(db, path, true);
  // Once more without direct I/O: the file system may not support it, or the disk may have
  // recovered.
  if (!read.ok() && !read.IsCorruption()) read = read_all(db, path, false);
  const bool bad = read.IsCorruption() || (read.IsIOError() && !is_want_of_room(read));
  // A file that a compaction has dropped while it was read says nothing.
  if (bad && is_live(db, next->file_number))
    page.damage =
        fmt::format("{} of level {}: {}", next->relative_filename, next->level, read.ToString());
  if (keep_place) {
    const Bytes value = page.place.encode();
    // Lost with a power cut: some files are read twice.
    db.Put(rocksdb::WriteOptions(), rocksdb::Slice(place_key()), rocksdb::Slice(value))
        .PermitUncheckedError();
  }
  return page;
}

Scrub::Scrub(int64_t period_us, uint32_t lane, base::Reactor& reactor, base::IoPool& pool,
             Actions actions, Logger logger)
    : period_us_(period_us),
      lane_(lane),
      reactor_(reactor),
      pool_(pool),
      actions_(std::move(actions)),
      logger_(std::move(logger)) {}

Scrub::~Scrub() {
  *alive_ = false;
  stop();
}

void Scrub::stop() {
  stopped_ = true;
  if (timer_ != 0) reactor_.cancel(std::exchange(timer_, 0));
}

void Scrub::start() {
  if (period_us_ == 0 || TETRAD_MUTANT(scrub_off)) return;
  begin();
}

void Scrub::look_after(int64_t us) {
  if (stopped_) return;
  timer_ = reactor_.call_at(reactor_.now_us() + us, [this] {
    timer_ = 0;
    next();
  });
}

/// Each file has its part of the period, by its size.
// So the whole round takes about the period, whatever the sizes of files.
int64_t Scrub::pause_us(const Page& page) const {
  if (page.total_bytes == 0) return kLongestWaitUs;
  const double part = static_cast<double>(page.place.bytes) / static_cast<double>(page.total_bytes);
  return static_cast<int64_t>(static_cast<double>(period_us_) * std::min(part, 1.0));
}

/// Where the last life was.
void Scrub::begin() {
  const std::shared_ptr<RocksDatabase> database = actions_.database();
  if (database == nullptr) return look_after(kTryAgainUs);
  const auto page = std::make_shared<Page>();
  pool_.run(
      reactor_, base::IoDuty::kMaintenance, lane_,
      [database, page] {
        const RocksDatabase::Visit visit(*database);
        if (visit) *page = page_of<Page>([&] { return read_next(*database, 0, false, 0, true); });
      },
      [this, alive = alive_, page] {
        if (!*alive || stopped_) return;
        last_file_ = page->place.file;
        const int64_t due_us = page->place.at_us + pause_us(*page);
        look_after(std::clamp<int64_t>(due_us - reactor_.wall_time_us(), 0, period_us_));
      });
}

void Scrub::next() {
  const std::shared_ptr<RocksDatabase> database = actions_.database();
  if (database == nullptr) return look_after(kTryAgainUs);
  const auto page = std::make_shared<Page>();
  pool_.run(
      reactor_, base::IoDuty::kMaintenance, lane_,
      [database, page, after = last_file_, now_us = reactor_.wall_time_us()] {
        const RocksDatabase::Visit visit(*database);
        if (visit)
          *page = page_of<Page>([&] { return read_next(*database, after, true, now_us, false); });
      },
      [this, alive = alive_, page] {
        if (*alive && !stopped_) take(*page);
      });
}

void Scrub::take(const Page& page) {
  if (page.failure) return look_after(std::min(kTryAgainUs, period_us_));  // the same again
  if (page.is_done || page.place.file == 0) {  // a round is over, or there is nothing yet
    last_file_ = 0;
    return look_after(page.total_bytes == 0 ? std::min(kTryAgainUs, period_us_) : 0);
  }
  TETRAD_ASSERT(page.place.file > last_file_);  // a round goes on, file by file
  last_file_ = page.place.file;
  note(page);
  look_after(pause_us(page));
}

void Scrub::note(const Page& page) {
  ++figures_.files;
  figures_.bytes += page.place.bytes;
  if (page.damage.empty()) return;
  ++figures_.damaged_files;
  actions_.damaged(page.damage);
}

void Scrub::run_now(std::move_only_function<void(Result<ScrubSummary>)> done) {
  const auto round = std::make_shared<Round>();
  round->done = std::move(done);
  next_of(round);
}

void Scrub::next_of(std::shared_ptr<Round> round) {
  const std::shared_ptr<RocksDatabase> database = actions_.database();
  if (stopped_ || database == nullptr)
    return round->done(fail(ErrorCode::kCancelled, "the store is closed"));
  const auto page = std::make_shared<Page>();
  pool_.run(
      reactor_, base::IoDuty::kMaintenance, lane_,
      [database, page, after = round->after] {
        const RocksDatabase::Visit visit(*database);
        if (visit)
          *page = page_of<Page>([&] { return read_next(*database, after, false, 0, false); });
      },
      [this, alive = alive_, page, round] {
        if (!*alive) return round->done(fail(ErrorCode::kCancelled, "the store is closed"));
        if (page->failure) return round->done(std::unexpected(std::move(*page->failure)));
        if (page->is_done || page->place.file == 0) return round->done(std::move(round->summary));
        TETRAD_ASSERT(page->place.file > round->after);
        note(*page);
        round->after = page->place.file;
        ++round->summary.files;
        round->summary.bytes += page->place.bytes;
        if (!page->damage.empty()) round->summary.damaged.push_back(page->damage);
        next_of(round);
      });
}

}  // namespace tetrad::storage
