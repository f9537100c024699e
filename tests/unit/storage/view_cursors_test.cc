// SPDX-License-Identifier: Apache-2.0
// Where a read of a row's tasks and notes begins (rule 24): behind what is erased, never behind what
// is there or on its way.
#include "storage/views/view_cursors.h"

#include <set>

#include <catch2/catch.hpp>

#include "base/random.h"

namespace tetrad::storage {
namespace {

uint64_t note_of(int64_t stamp_us) { return kViewNotes + static_cast<uint64_t>(stamp_us); }
base::Hash128 row(uint64_t number) { return {number, number}; }

TEST_CASE("a read begins behind what the one before has seen, once that is erased") {
  ViewCursors cursors(10);
  CHECK(cursors.begin_read(row(1), {100}).tasks == 0);
  cursors.begin_note(row(1), note_of(100));
  CHECK(cursors.begin_read(row(1), {101}).notes == kViewNotes);  // nothing is erased yet
  cursors.end_note(row(1), note_of(100));
  cursors.settled(row(1), {100}, {5, 9, note_of(50)});
  const ViewRecordsFrom from = cursors.begin_read(row(1), {200});
  CHECK(from.tasks == 10);
  CHECK(from.notes > note_of(50));
  CHECK(from.notes <= note_of(100));
  CHECK(cursors.begin_read(row(2), {300}).tasks == 0);
}

TEST_CASE("a note that a read may not have seen stays in sight") {
  ViewCursors cursors(10);
  SECTION("on its way when the read began") {
    cursors.begin_note(row(1), note_of(30));
    cursors.begin_read(row(1), {100});
    cursors.end_note(row(1), note_of(30));
  }
  SECTION("written since") {
    cursors.begin_read(row(1), {100});
    cursors.begin_note(row(1), note_of(30));
    cursors.end_note(row(1), note_of(30));
  }
  cursors.settled(row(1), {100}, {7, note_of(90)});
  CHECK(cursors.begin_read(row(1), {200}).notes <= note_of(30));
}

TEST_CASE("a late note lowers the cursor at once") {
  ViewCursors cursors(10);
  cursors.begin_read(row(1), {100});
  cursors.settled(row(1), {100}, {7, note_of(90)});
  CHECK(cursors.begin_read(row(1), {200}).notes > note_of(90));
  cursors.begin_note(row(1), note_of(40));
  CHECK(cursors.begin_read(row(1), {300}).notes == note_of(40));
  cursors.end_note(row(1), note_of(40));
}

TEST_CASE("rows are forgotten beyond the limit, but not while notes are on their way") {
  ViewCursors cursors(100);
  cursors.begin_note(row(0), note_of(5));
  for (uint64_t i = 1; i < 10'000; ++i) cursors.begin_read(row(i), {100});
  CHECK(cursors.size() <= 101);
  cursors.begin_read(row(0), {100});
  cursors.end_note(row(0), note_of(5));
  cursors.settled(row(0), {100}, {note_of(20)});
  CHECK(cursors.begin_read(row(0), {200}).notes <= note_of(5));
}

// Against a store in which records are there, on their way, or gone; writes end in their order, and a
// read sees what was there when it began.
TEST_CASE("no record that is there or on its way is below the cursors") {
  for (uint64_t seed = 1; seed <= 300; ++seed) {
    CAPTURE(seed);
    base::Random random(seed);
    ViewCursors cursors(4);
    struct Seen {
      ViewStamp stamp;
      std::vector<uint64_t> sequences;
      bool has_names;
    };
    struct Write {
      std::optional<uint64_t> note;
      std::optional<Seen> settled;
    };
    std::set<uint64_t> there;
    std::vector<Write> under_way;
    std::vector<Seen> reads;
    uint64_t tasks = 0;
    int64_t now = 0;
    for (int step = 0; step < 400; ++step) {
      switch (random.below(5)) {
        case 0:
          there.insert(++tasks);
          break;
        case 1: {
          const ViewStamp stamp{++now};
          const ViewRecordsFrom from = cursors.begin_read(row(1), stamp);
          Seen seen{stamp, {}, random.one_in(2)};
          for (const uint64_t sequence : there) {
            REQUIRE(sequence >= (sequence < kViewNotes ? from.tasks : from.notes));
            seen.sequences.push_back(sequence);
          }
          reads.push_back(std::move(seen));
          break;
        }
        case 2: {
          if (reads.empty()) break;
          // Settlements come in any order, some never.
          const size_t at = random.below(reads.size());
          Seen seen = std::move(reads[at]);
          reads.erase(reads.begin() + static_cast<std::ptrdiff_t>(at));
          if (random.one_in(5)) break;
          Write write;
          if (seen.has_names) write.note = note_of(seen.stamp.us);
          write.settled = std::move(seen);
          if (write.note) cursors.begin_note(row(1), *write.note);
          under_way.push_back(std::move(write));
          break;
        }
        case 3:
          if (now == 0) break;
          under_way.push_back(
              {note_of(1 + static_cast<int64_t>(random.below(static_cast<uint64_t>(now)))),
               std::nullopt});
          cursors.begin_note(row(1), *under_way.back().note);
          break;
        default: {
          if (under_way.empty()) break;
          const Write write = std::move(under_way.front());
          under_way.erase(under_way.begin());
          if (write.settled)
            for (const uint64_t sequence : write.settled->sequences) there.erase(sequence);
          if (write.note) {
            there.insert(*write.note);
            cursors.end_note(row(1), *write.note);
          }
          if (write.settled)
            cursors.settled(row(1), write.settled->stamp, write.settled->sequences);
          break;
        }
      }
      if (random.one_in(50)) cursors.begin_read(row(2 + random.below(9)), {now});
    }
  }
}

}  // namespace
}  // namespace tetrad::storage
