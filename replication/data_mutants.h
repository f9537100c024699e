// SPDX-License-Identifier: Apache-2.0
// Known mistakes of the data plane, to be switched on one at a time by the simulation, which must
// catch each. Exists in tests only: without TETRAD_DATA_MUTANTS every switch is the constant false.
#pragma once

namespace tetrad::replication {

#ifdef TETRAD_DATA_MUTANTS
struct DataMutants {
  bool write_acks_one = false;     // rule 1: a write is acknowledged by one replica
  bool hints_count = false;        // rule 1: a hint counts as an ack
  bool quorum_asks_one = false;    // rule 1: a QUORUM read asks one replica
  bool digests_ignored = false;    // a mismatch is not noticed
  bool stale_stamp_acked = false;  // rule 28: a replica that has seen a later stamp is not heeded
  bool fill_not_awaited = false;   // rule 9: reads go to the new set before it is filled
  bool fill_from_one = false;      // rule 10: a new member is built from one old one
  bool repair_reads_nothing = false;  // rule 18: the horizon rises without a repair
  bool merge_not_written = false;     // rule 3: the merge is answered without being written back
};
inline DataMutants data_mutants;
#define TETRAD_MUTANT(name) (::tetrad::replication::data_mutants.name)
#else
#define TETRAD_MUTANT(name) false
#endif

}  // namespace tetrad::replication
