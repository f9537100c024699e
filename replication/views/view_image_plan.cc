// SPDX-License-Identifier: Apache-2.0
#include "replication/views/view_image_plan.h"

#include <set>
#include <utility>

#include "base/data_mutants.h"
#include "storage/views/view_image.h"

namespace tetrad::replication {

namespace {

/// Stores keep the value of an expired cell for an hour, by their own clocks.
constexpr int64_t kExpiredKept_s = 600;

/// What a piece of an image has, unless one cell has more.
constexpr size_t kPieceBytes = 1 << 20;

void add_piece(const storage::ViewMaker& maker, const storage::ViewPlace& place,
               const storage::RowRecord& piece, std::vector<storage::Mutation>& out) {
  storage::Mutation& mutation = out.emplace_back();
  mutation.incarnation = maker.incarnation();
  mutation.schema_version = maker.schema_version();
  mutation.position = place.position;
  mutation.partition_key = place.partition_key;
  storage::RowChange& change = mutation.rows.emplace_back();
  change.clustering_key = place.clustering_key;
  storage::encode_row_record(piece, change.record);
}

// A row grows by many writes, but a mutation has a limit. All pieces have the image's stamp, so in
// whatever order they come, together they are the image.
void add_image(const storage::ViewMaker& maker, const storage::ViewPlace& place,
               storage::RowRecord& image, std::vector<storage::Mutation>& out) {
  const std::vector<storage::Cell> cells = std::exchange(image.cells, {});
  size_t bytes = 0;
  for (const storage::Cell& cell : cells) {
    const size_t more = cell.value.size() + cell.path.size();
    if (!image.cells.empty() && bytes + more > kPieceBytes) {
      add_piece(maker, place, image, out);
      image = {};
      bytes = 0;
    }
    image.cells.push_back(cell);
    bytes += more;
  }
  add_piece(maker, place, image, out);
}

}  // namespace

Result<Bytes> shown_values(BytesView record, int64_t now_s) {
  Bytes out;
  if (record.empty()) return out;
  TETRAD_TRY(storage::RowRecord row, storage::decode_row_record(record));
  const auto is_over = [&](int32_t ttl_s, int64_t expiry_s) {
    return ttl_s > 0 && expiry_s + kExpiredKept_s <= now_s;
  };
  row.deletion = {};
  if (is_over(row.liveness.ttl_s, row.liveness.expiry_s)) row.liveness = {};
  std::erase_if(row.cells, [&](const storage::Cell& cell) {
    return cell.kind != storage::CellKind::kValue || is_over(cell.ttl_s, cell.expiry_s);
  });
  if (!row.empty()) storage::encode_row_record(row, out);
  return out;
}

Result<ViewImages> view_images(const storage::ViewMakers& makers, const storage::ViewRow& row,
                               BytesView values, const storage::ViewNamesByView& names,
                               storage::ViewStamp stamp) {
  ViewImages out;
  storage::RowRecord base_row;
  if (!values.empty()) {
    TETRAD_TRY(base_row, storage::decode_row_record(values));
  }
  for (const storage::ViewMakerPtr& maker : makers) {
    std::set<std::pair<Bytes, Bytes>> places;  // one row may have several names
    const auto add = [&](const storage::ViewName& name) -> bool {
      const auto place =
          maker->place_of({row.partition_key, row.clustering_key, name.key_cell}, name.key_value);
      if (!place || !places.emplace(place->partition_key, place->clustering_key).second)
        return false;
      storage::RowRecord image =
          storage::view_image(*maker, base_row, name, place->key_cell, stamp);
      add_image(*maker, *place, image, out.mutations);
      return true;
    };
    // First the current name: nothing else is written at its place.
    const auto current = storage::view_name_of(*maker, base_row);
    if (current && add(*current)) out.current[maker->incarnation()].insert(*current);
    const auto named = names.find(maker->incarnation());
    if (named == names.end() || TETRAD_MUTANT(view_old_names_left)) continue;
    for (const storage::ViewName& name : named->second)
      if (name != current) add(name);
  }
  return out;
}

}  // namespace tetrad::replication
