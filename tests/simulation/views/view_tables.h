// SPDX-License-Identifier: Apache-2.0
// The tables of the view simulation: a base table with two views, and what a view should show.
//
//   base t  key text, row text; 1: value, 2: colour
//   view c  of t by colour: (colour), (key, row); 1: value
//   view r  of t turned around: (row), (key); 1: value, 2: colour
//
// With a condition (kConditionalViews) neither view has the rows whose text is kLeftOut.
#pragma once

#include <map>
#include <string>

#include "storage/row/read_command.h"
#include "storage/views/view_maker.h"
#include "tests/simulation/support/sim_cluster.h"

namespace tetrad::simulation {

inline constexpr uint32_t kValueColumn = 1, kColourColumn = 2;
inline constexpr uint8_t kBaseTable = 1, kColourView = 2, kRowView = 3;

TableId view_table_id(uint8_t number);
replication::SchemaChange::NewTable view_table(uint8_t number);
/// Unset: there is no such table.
std::optional<TableIncarnation> incarnation_of(const replication::MetaState& state, uint8_t number);
/// The object of the schema that says which views there are: a number is a view's.
inline const std::string kBaseObject = "table/ks/t";
/// What that object says: there are no views, there are, there are with a condition.
inline const std::string kNoViews = "plain", kAllViews = "views", kConditionalViews = "views if";
inline const Bytes kLeftOut = "b";
storage::ViewMakersPtr view_makers_of(const replication::MetaState& state,
                                      const replication::TableInfo& table);

/// Rows by partition and clustering key, with their live values by column.
using ShownRows = std::map<std::pair<Bytes, Bytes>, std::map<uint32_t, Bytes>>;
/// Adds what an answer shows at `now_s`.
void add_shown(const storage::ReadResult& result, int64_t now_s, ShownRows& out);
/// What the view shows if the base shows this.
ShownRows shown_by_view(uint8_t view, bool has_condition, const ShownRows& base);

}  // namespace tetrad::simulation
