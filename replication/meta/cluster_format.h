// SPDX-License-Identifier: Apache-2.0
// The format of metadata commands, of the metadata's image and of messages between nodes, as one
// number, so that a cluster can be given a new program one node at a time. Each node says with its
// NodeInfo up to which format its program reads; what is written is of the format that all nodes
// read (MetaState::format), which rises by itself when the last of them has been given the new
// program, and never falls: a program that does not read it is refused.
//
//   format  metadata command, image  mutate  what is new
//   1       3, 3                     3       the first that was told apart
//   2       4, 4                     4       a node's format is a number in its NodeInfo; the
//                                            head of a mutation says its size, so that what a later
//                                            program appends to it is passed over
//   3       4, 4                     4       logged batches: nodes keep entries, and repair's
//                                            horizon stays below them; tables with counters
//   4       4, 4                     4       roles among the objects of the schema, and statements
//                                            that keep their permissions in step
//   5       4, 4                     4       tables with indexes, and reads by an index
//
// A new kind of command, and whatever an older program would refuse or misread, needs a new number
// here. What it passes over does not: fields behind the known ones of a heartbeat or of the head of
// a mutation.
#pragma once

#include <cstdint>

namespace tetrad::replication {

using ClusterFormat = uint32_t;

inline constexpr ClusterFormat kFormatFirst = 1;
inline constexpr ClusterFormat kFormatNumbered = 2;
inline constexpr ClusterFormat kFormatBatches = 3;
inline constexpr ClusterFormat kFormatCounters = 3;
inline constexpr ClusterFormat kFormatRoles = 4;
inline constexpr ClusterFormat kFormatIndexes = 5;
/// What this program reads and, once all nodes do, writes.
inline constexpr ClusterFormat kFormatNewest = kFormatIndexes;

}  // namespace tetrad::replication
