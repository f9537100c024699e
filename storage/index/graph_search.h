// SPDX-License-Identifier: Apache-2.0
// The parts of a search and of a build of a graph that run off the loop, over rows of one moment.
#pragma once

#include "storage/engine/key_view.h"
#include "storage/index/nearest_reader.h"
#include "storage/index/store_graphs.h"

namespace tetrad::storage {

/// What a search by a graph came to.
struct GraphAnswer {
  ReadResult result;
  SearchFigures figures;
};

/// Finds the nearest by the graph and what was noted beside it, looks each up among the rows, and
/// names those that exist, by their current distances. The answer is never exhausted: a graph
/// may miss some. Errors: kOverloaded, kCorruption, and those of the view.
Result<GraphAnswer> search_graph(KeyView& rows, const TableContents& contents,
                                 const ReadCommand& command, const GraphView& graph);

/// Adds the vectors of a page of rows, `vectors_max` or so, behind `after`. Unset: it was the last
/// one. Errors: kLimit: the graph is full, the page is to be added again; kInvalid: there is a
/// vector that does not fits_graph(); others as search_graph().
Result<std::optional<ReadPosition>> add_rows_to_graph(KeyView& rows, const TableContents& contents,
                                                      const GraphName& name,
                                                      const std::optional<ReadPosition>& after,
                                                      int64_t now_s, uint32_t vectors_max,
                                                      VectorGraph& graph);

}  // namespace tetrad::storage
