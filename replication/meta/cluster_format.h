// SPDX-License-Identifier: Apache-2.0
// The format of metadata commands, of the metadata's image and of messages between nodes, as one
// number, so that a cluster can be given a new program one node at a time. Each node says with its
// NodeInfo up to which format its program reads; what is written is of the format that all nodes
// read (MetaState::format), which rises by itself when the last of them has been given the new
// program, and never falls: a program that does not read it is refused.
//
//   format  metadata command, image  mutate  what is new
//   1       3, 3                     3       the first that had a number
//   2       4, 4                     4       a node's format is a number in its NodeInfo; the
//                                            head of a mutation says its size, so that what a later
//                                            program appends to it is passed over
//   3       4, 4                     4       logged batches: nodes keep entries, and repair's
//                                            horizon stays below them; tables with counters
//   4       4, 4                     4       roles among the objects of the schema, and statements
//                                            that keep their permissions in step
//   5       4, 4                     4       tables with indexes, and reads by an index
//   6       5, 5                     4       a node's NodeInfo says where drivers reach it
//   7       5, 5                     4       tables with materialized views, messages of these
//   8       5, 5                     4       an object of the schema names the data centres that
//                                            hold a keyspace (placed_in.h)
//   9       5, 5                     4       tablets are merged: the command, its messages, and a
//                                            map of tablets that says what merges took from it;
//                                            passwords hashed by argon2id
//   10      5, 5                     4       holders of throughputs take back what is not spent, and
//                                            give each other what their tablets do not use; tables
//                                            with masked columns; groups of addresses, and roles
//                                            bound to them; searches for the nearest
//                                            vectors, and indexes on vectors; views with
//                                            conditions, which would get all rows before
//   11      5, 5                     4       lost nodes are removed (RemoveLostNodes): asked is what
//                                            the others read, since the lost ones are given no new
//                                            program any more
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
inline constexpr ClusterFormat kFormatClientAddress = 6;
inline constexpr ClusterFormat kFormatViews = 7;
inline constexpr ClusterFormat kFormatPlacement = 8;
inline constexpr ClusterFormat kFormatMerges = 9;
inline constexpr ClusterFormat kFormatArgon2id = 9;
inline constexpr ClusterFormat kFormatThroughput = 10;
inline constexpr ClusterFormat kFormatMasks = 10;
inline constexpr ClusterFormat kFormatAddressGroups = 10;
inline constexpr ClusterFormat kFormatNearest = 10;
inline constexpr ClusterFormat kFormatViewConditions = 10;
inline constexpr ClusterFormat kFormatLostNodes = 11;
/// What this program reads and, once all nodes do, writes.
inline constexpr ClusterFormat kFormatNewest = kFormatLostNodes;

/// The number that commands and the image begin with; it rises where their bytes change.
inline constexpr uint8_t kMetaEncodingFirst = 3, kMetaEncodingNumbered = 4;
inline constexpr uint8_t kMetaEncodingClientAddress = 5, kMetaEncodingNewest = 5;
inline constexpr uint8_t kMetaEncodingWithoutChangeLogs = 1;
inline constexpr uint8_t kMetaEncodingWithoutThroughput = 2;

/// What is written in a cluster of `format`.
constexpr uint8_t meta_encoding_of(ClusterFormat format) {
  if (format >= kFormatClientAddress) return kMetaEncodingClientAddress;
  return format >= kFormatNumbered ? kMetaEncodingNumbered : kMetaEncodingFirst;
}
/// The first format that is written so.
constexpr ClusterFormat first_format_of(uint8_t encoding) {
  if (encoding >= kMetaEncodingClientAddress) return kFormatClientAddress;
  return encoding >= kMetaEncodingNumbered ? kFormatNumbered : kFormatFirst;
}

}  // namespace tetrad::replication
