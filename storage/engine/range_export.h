// SPDX-License-Identifier: Apache-2.0
// Everything stored of a range, not only what lives: pages of mutations for streams and repair, of
// registers, and sizes for split points.
#pragma once

#include <vector>

#include "storage/engine/key_view.h"
#include "storage/engine/store.h"
#include "storage/row/storage_key.h"

namespace tetrad::storage {

/// Adds what is stored at one key of its partition to a mutation; registers, too. Errors:
/// kCorruption.
Result<void> add_to_mutation(Mutation& mutation, const StorageKeyView& key, BytesView value);

/// Everything stored of a range, as Store::export_range describes.
Result<Store::ExportPage> export_page(KeyView& view, TableIncarnation incarnation,
                                      SchemaVersion schema_version, const RingRange& range,
                                      BytesView after, uint64_t bytes_max, ExportParts parts);

/// As Store::list_registers describes.
Result<Store::RegistersPage> registers_page(KeyView& view, TableIncarnation incarnation,
                                            const RingRange& range, BytesView after,
                                            size_t partitions_max);

/// Exact sizes of a range by looking at every key, joined to about `count` samples.
Result<std::vector<SizeSample>> scan_sizes(KeyView& view, TableIncarnation incarnation,
                                           const RingRange& range, size_t count);

}  // namespace tetrad::storage
