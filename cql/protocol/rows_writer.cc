// SPDX-License-Identifier: Apache-2.0
// Rows results (native protocol v5, section 4.2.5.2):
//
//   i32 2 | i32 flags | i32 columns | [paging state] | [new metadata id] | [columns] | i32 rows |
//   cells
//
// append_rows() writes rows whose cells are made already; RowsWriter is for rows that are made one
// by one, whose number, length and paging state are filled in at the end.
#include <fmt/format.h>

#include "base/assert.h"
#include "cql/protocol/envelope_writer.h"
#include "cql/protocol/notation.h"
#include "cql/protocol/response.h"

namespace tetrad::cql {
namespace {

constexpr int32_t kRows = 2;
constexpr uint32_t kGlobalTable = 0x01;
constexpr uint32_t kHasMorePages = 0x02;
constexpr uint32_t kNoMetadata = 0x04;
constexpr uint32_t kMetadataChanged = 0x08;
// The flags and the number of columns, both 32 bits.
constexpr size_t kFlagsAndCountBytes = 8;

/// Returns where the flags are. Ends before the number of rows.
size_t append_rows_metadata(Bytes& out, int version, const EncodedMetadata& metadata,
                            const RowsOptions& options) {
  const bool changed = options.metadata_changed && version >= 5;
  // Columns that have changed must be sent, whatever the client asked for.
  TETRAD_ASSERT(!(options.skip_metadata && changed));
  uint32_t flags = 0;
  if (options.paging_state) flags |= kHasMorePages;
  if (changed) flags |= kMetadataChanged;
  if (options.skip_metadata) flags |= kNoMetadata;
  if (metadata.global_table()) flags |= kGlobalTable;  // as Cassandra: also where it is left out
  append_int(out, kRows);
  const size_t flags_at = out.size();
  append_int(out, flags);
  append_int(out, static_cast<int32_t>(metadata.column_count()));
  if (options.paging_state) append_bytes(out, options.paging_state);
  if (changed) append_short_bytes(out, view_of(metadata.id()));
  if (!options.skip_metadata) out.append(metadata.encoded(version));
  return flags_at;
}

void append_too_large(Bytes& out, const ReplyHead& head, size_t size) {
  append_error(out, head,
               Error(ErrorCode::kInvalid,
                     fmt::format("The result page of {} bytes exceeds the largest message of {} "
                                 "bytes: please use a smaller page size",
                                 size, kResponseBodyBytesMax)));
}

}  // namespace

void append_rows(Bytes& out, const ReplyHead& head, const EncodedMetadata& metadata,
                 const RowsOptions& options, int32_t row_count, BytesView cells) {
  const size_t start = out.size();
  EnvelopeWriter envelope(out, head, Opcode::kResult);
  append_rows_metadata(out, head.version, metadata, options);
  append_int(out, row_count);
  const size_t body = out.size() - start - kEnvelopeHeaderBytes + cells.size();
  // What was written is taken back, and the client gets an error that says what to do.
  if (body > kResponseBodyBytesMax) {
    out.resize(start);
    append_too_large(out, head, body);
    return;
  }
  out.append(cells);
  envelope.finish();
}

RowsWriter::RowsWriter(Bytes& out, const ReplyHead& head, const EncodedMetadata& metadata,
                       const RowsOptions& options)
    : out_(out),
      start_(out.size()),
      columns_(metadata.column_count()),
      version_(head.version),
      stream_(head.stream) {
  const EnvelopeWriter envelope(out, head, Opcode::kResult);
  metadata_flags_at_ = append_rows_metadata(out, head.version, metadata, options);
  row_count_at_ = out.size();
  append_int(out, int32_t{0});
}

void RowsWriter::end_row() {
  ++rows_;
  TETRAD_ASSERT(cells_ == static_cast<size_t>(rows_) * columns_);
}

void RowsWriter::finish() {
  const size_t body = size() - kEnvelopeHeaderBytes;
  if (body > kResponseBodyBytesMax) {
    abandon();
    append_too_large(out_, {.version = version_, .stream = stream_}, body);
    return;
  }
  base::store_big_endian(out_.data() + row_count_at_, rows_);
  patch_body_length(out_, start_);
}

// The state belongs before the columns, but is known after the rows: it is inserted, which moves
// the rows once.
void RowsWriter::finish_with_more_pages(BytesView paging_state) {
  char* flags_at = out_.data() + metadata_flags_at_;
  const auto flags = base::load_big_endian<uint32_t>(flags_at);
  TETRAD_ASSERT((flags & kHasMorePages) == 0);
  base::store_big_endian(flags_at, flags | kHasMorePages);
  char size[4];
  base::store_big_endian(size, static_cast<int32_t>(paging_state.size()));
  const size_t at = metadata_flags_at_ + kFlagsAndCountBytes;
  const size_t added = sizeof(size) + paging_state.size();
  out_.insert(at, added, '\0');
  std::memcpy(out_.data() + at, size, sizeof(size));
  if (!paging_state.empty()) {
    std::memcpy(out_.data() + at + sizeof(size), paging_state.data(), paging_state.size());
  }
  row_count_at_ += added;
  finish();
}

void RowsWriter::abandon() { out_.resize(start_); }

}  // namespace tetrad::cql
