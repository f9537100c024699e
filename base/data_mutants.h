// SPDX-License-Identifier: Apache-2.0
// Known mistakes of the data plane, to be switched on one at a time by the simulation, which must
// catch each (tests/simulation/README.md). Exists in tests only: without TETRAD_DATA_MUTANTS every
// switch is the constant false. Only .cc files may ask for a switch: a header's inline function
// would be compiled both ways.
#pragma once

namespace tetrad::base {

/// One switch for each mistake; all are off until a simulation sets one, before its first event.
struct DataMutants {
  // Quorums and reads. A read at QUORUM asks W members, and what it answers is on W (rules 1 and
  // 3). A reply says up to which key it is complete, and a merge ends at the smallest of these keys
  // (rule 5). Digests are of one canonical form at the coordinator's time (rule 6), and conditions
  // on values are tested on merged rows only (rule 7).
  bool write_acks_one = false;         // rule 1: a write is acknowledged by one replica
  bool floor_skipped = false;          // rule 1: the level's number alone, without the floor W
  bool hints_count = false;            // rule 1: a hint counts as an ack
  bool quorum_asks_one = false;        // rule 1: a QUORUM read asks one replica
  bool digests_ignored = false;        // rule 3: a mismatch is not noticed
  bool merge_not_written = false;      // rule 3: the merge is answered without being written back
  bool last_answer_ignored = false;    // rule 3: a read waits on although nobody is asked any more
  bool merge_uncut = false;            // rule 5: the merge goes on past where a reply ends
  bool full_reply_uncut = false;       // rule 5: a reply that reached its LIMIT counts as complete
  bool tombstones_uncut = false;       // rule 5: range tombstones reach past the end of a reply
  bool page_row_lost = false;          // rule 5: a page leaves out its last row
  bool page_row_twice = false;         // rule 5: a page ends before its last row
  bool page_ends_all = false;          // rule 5: a scan ends with the first tablet
  bool row_limit_anew = false;         // rule 5: LIMIT begins anew in each tablet
  bool partition_limit_anew = false;   // rule 5: PER PARTITION LIMIT begins anew in each page
  bool limit_counts_dead = false;      // rule 5: PER PARTITION LIMIT counts deleted rows
  bool reversed_cut_forward = false;   // rule 5: a reversed merge is cut as a forward one
  bool deletion_of_one = false;        // rule 7: a row is tested without other replicas' deletions
  bool row_of_one = false;             // rule 7: of several versions of a row the first one counts
  bool header_of_one = false;          // rule 7: the same of static columns
  bool digest_keeps_hidden = false;    // rule 6: what a tombstone hides is in the digest
  bool replica_takes_own_now = false;  // rule 6: a replica's own clock decides what is expired

  // Changes of members. Each request carries the epoch of its tablet, and a replica of another
  // epoch refuses it (rule 8). A move goes through stages, each left when W of both sets know it
  // (rule 9). A new member is filled from R old ones, merged (rule 10), and a store erases what it
  // held of an earlier stay (rule 11).
  bool old_epoch_accepted = false;     // rule 8: a replica takes requests of an epoch that is over
  bool confirmations_skipped = false;  // rule 8: a stage is left before W know it
  bool stage_skipped = false;          // rule 9: from "write both" to "read new"
  bool fill_not_awaited = false;       // rule 9: new members are read before they are filled
  bool pending_writes_old = false;     // rule 9: meanwhile writes go to the old set only
  bool pending_writes_new = false;     // rule 9: to the new set only
  bool tallies_mixed = false;          // rule 9: acks of either set count for the old one
  bool settling_skipped = false;       // rule 9: late writes stay on the old members alone
  bool reads_new_only = false;         // rule 9: "read new" forgets those who still read old
  bool local_counts_all = false;       // rule 1: LOCAL_QUORUM is counted over all data centres
  bool quorum_not_local = false;       // rule 1: QUORUM without the quorum of its own data centre
  bool fill_from_one = false;          // rule 10: a new member is filled from one old one
  bool cleanup_skipped = false;        // rule 11: a tablet returns to a store that kept its data
  bool source_not_closed = false;      // rule 10: a source gives before it has closed the stage
  bool all_is_w = false;               // rule 1: ALL means W of the new members
  bool end_not_compared = false;       // rule 5: digests that end elsewhere agree
  bool split_edge_lost = false;        // rule 12: a scan leaves out the last place of a tablet
  bool split_edge_twice = false;       // rule 12: a scan takes the last place of a tablet twice
  bool limits_at_replica = false;      // rule 13: a replica refuses a mutation of a full tablet

  // Fences (replication/replica/fence.h): a write that was let in by an epoch must have ended
  // before that epoch counts as over, wherever it waits meanwhile. All of rule 8.
  bool fence_at_enqueue = false;      // rule 8: a write is not asked again when it leaves the queue
  bool drain_skipped = false;         // rule 8: an epoch is confirmed while older writes are on
                                      // their way to the disk
  bool parked_past_deadline = false;  // rule 8: what waited past its deadline is written
  bool own_node_no_deadline = false;  // a write to the node's own store has no end
  bool range_fenced_at_end = false;   // rule 8: a range is let in by its last place alone

  // Power cuts. A machine that stopped uncleanly has lost what it acknowledged but had not synced.
  // It is "behind": it answers no read until it has fetched that from members that are not (rule
  // 20).
  bool behind_reads = false;      // rule 20: a replica that is behind answers reads
  bool behind_is_source = false;  // rule 20: one that is behind is fetched from
  bool behind_not_kept = false;   // rule 20: a second start forgets that it is behind
  bool behind_from_one = false;   // rule 20: it fetches from one member only
  bool others_not_asked = false;  // rule 20: where R of its data centre are not to be had it waits
  bool no_second_pass = false;    // rule 20: what was under way at the cut is not fetched
  bool recent_undrained = false;  // rule 20: a source tells while earlier writes wait for its disk
  bool marks_not_raised = false;  // rule 20: bucket marks begin where the disk has them
  bool writeback_unsynced = false;  // rule 20: what a read writes back counts before it is synced
  bool fill_unsynced = false;       // rule 20: a new member is full before it is synced
  bool all_cut_alone = false;       // rule 20: after a cut of all, each answers from its own disk
  bool feed_sequence_kept = false;  // rule 20: sequences go on where the disk has them
  bool boot_id_ignored = false;     // rule 20: a start of the machine counts as one of the process
  bool sync_record_early = false;   // rule 20: a sync record goes before what it covers is synced
  bool told_not_compared = false;   // rule 20: a store that lacks what it reported counts as whole
  bool start_not_compared =
      false;                     // rule 20: a folder put back from a copy is taken for the newest
  bool repair_unsynced = false;  // rule 20: the horizon rises before what repair brought is

  // Conditional statements, in a store: its registers (storage/row/paxos_registers.h) are synced
  // before they are answered, and leave in one batch with the rows of their commit.
  bool registers_unsynced = false;   // rule 21: a promise is answered before it is synced
  bool commit_torn = false;          // the rows of a commit go in another batch than its registers
  bool registers_unwatched = false;  // registers are purged although written since
  bool imported_commit_alone = false;  // a commit is imported without its rows

  // Where tablets are: placement over racks, and balance between nodes. Both are pure functions of
  // the metadata and of what nodes report.
  bool racks_forgotten = false;            // what is lost comes back in whatever rack
  bool dead_awaited = false;               // rule 30: a set waits for a dead node to be a member
  bool balance_pending_uncounted = false;  // what moves already counts as not moved
  bool balance_without_band = false;       // a move needs no gap between the nodes

  // Splits by heat: a tablet is cut when it is hot for long and its store is busy, where the work
  // halves.
  bool heat_at_once = false;           // one hot slot is enough
  bool heat_of_child_at_once = false;  // a new half is cut again before it has rested
  bool heat_of_idle_store = false;     // a store that is not busy splits, too
  bool heat_cut_in_middle = false;     // the tokens are halved, not the work
  bool heat_one_cut = false;           // of two cuts the first one only

  // Throughputs: one token bucket for each tablet of a limited table, at its acting member. What
  // all buckets of a table give together must not exceed its limit, over splits, merges and deaths.
  bool throughput_full_at_split = false;  // rule 31: a child of a split begins with a full bucket
  bool throughput_ghost_bucket = false;   // rule 31: a tablet that is no more lends on
  bool throughput_debt_dropped = false;   // rule 31: a merge forgets what is owed
  bool throughput_given_kept = false;     // rule 31: who gives to another tablet keeps it as well
  bool throughput_unheard_taken = false;  // rule 31: what was asked for counts without an answer

  // Merges of tablets: only neighbours with equal members and equal horizons become one, under an
  // epoch above both (rule 12). The last two mistakes cost work only.
  bool merge_unequal_sets = false;    // rule 12: halves with other members are merged
  bool merge_lower_horizon = false;   // rule 12: unequal horizons: the lower one is the whole's
  bool merge_higher_horizon = false;  // rule 12: the higher one is
  bool merge_epoch_of_left = false;   // rule 8: the whole goes on at the left half's epoch
  bool merge_repairs_left = false;    // rule 12: the right half is taken for repaired with the left
  bool merge_layout_sum = false;  // rule 12: places of change feeds are as old as the epochs say
  bool merge_at_once = false;     // what is cold now counts as cold for long
  bool merge_bounces = false;     // how often a place was split and merged does not count

  // Stores that fail: damage on a disk must neither be served nor copied to others.
  bool failed_store_live = false;   // a replica on a store that failed counts as live
  bool damaged_is_source = false;   // a damaged store is streamed from
  bool file_dropped_alone = false;  // a bad file goes without the rest of its range
  bool scrub_off = false;           // nobody reads blocks that are not asked for

  // The store. When a row may be Put in the place of what is there (rules 14 and 15), how two
  // versions become one (rule 16), what a tombstone hides and when both may be purged (rules 17 and
  // 18), and what a store may remember of a read (rule 19). Most of these need the store's own
  // simulation, which compares RocksDB with the model.
  bool put_below_mark = false;          // rule 14: Put although not newer than the bucket's mark
  bool put_over_tombstone = false;      // rule 14: Put although the bucket saw a row tombstone
  bool put_other_version = false;       // rule 14: Put of another schema version's columns
  bool ingest_put = false;              // rule 15: what is streamed or repaired is Put
  bool ingest_keeps_marks = false;      // rule 15: what is streamed or repaired raises no mark
  bool marks_not_restored = false;      // rule 15: a restart forgets the marks
  bool tombstone_loses_tie = false;     // rule 16: a value wins over a tombstone of its timestamp
  bool deletion_time_ignored = false;   // rule 16: of equal tombstones the first one stays
  bool tombstone_start_unique = false;  // rule 17: one range tombstone per start bound
  bool expired_forgotten = false;       // rule 17: an expired cell leaves nothing behind
  bool writes_back_blindly = false;     // rule 19: writes after a read are not looked for
  bool row_cache_never_stale = false;  // the row cache answers although something was written since
  bool retired_readable = false;       // rule 22: a store reads an incarnation that is gone
  bool repair_reads_nothing = false;   // rule 18: the horizon rises without a repair
  bool horizon_not_cut = false;        // rule 6: purgeable tombstones are compared
  bool purge_over_horizon = false;     // rule 18: what was deleted goes whatever the horizon
  bool purge_hides_nothing = false;    // rule 17: a tombstone goes before what it hides
  bool purge_ignores_newer = false;    // rule 17: what was written since is not looked for
  bool purge_ignores_late = false;     // rule 17: a tombstone goes though what it hides came since
  bool reach_forgotten = false;        // rule 17: a read overlooks tombstones that begin before it
  bool dead_run_kept = false;          // rule 19: rows known as dead stay so when one is written
  bool marks_not_inherited = false;    // rule 14: a table's marks begin anew when they grow finer
  bool late_repair_taken = false;      // rule 18: rows read before the horizon rose are taken

  // The change feed: every change reaches a reader at least once, whichever way it came into a
  // store; a place never passes what was not delivered, and sequences go on over restarts.
  bool streams_not_logged = false;        // what is streamed has no entries
  bool merged_not_logged = false;         // what hints and repairs bring has no entries
  bool changes_ask_one = false;           // a page takes one member of a tablet for enough
  bool change_places_ahead = false;       // a place moves past what was delivered
  bool change_sequence_restarts = false;  // a restart gives sequences below the last

  // Clocks. Server timestamps rise, also over restarts and over nodes whose clocks are off (rule
  // 28); horizons are the earliest of all members' clocks (rule 18).
  bool horizon_one_clock = false;      // rule 18: a repair begins by the clock of one node
  bool repair_without_member = false;  // rule 18: a repair begins without a word of one member
  bool redate_skipped = false;         // rule 18: a deletion dated below the horizon is taken
  bool filter_raw_wall = false;        // rule 17: the wall clock decides what may lose its value
  bool quarantine_off = false;         // rule 28: a node whose clock is off goes on coordinating
  bool clock_back_at_start = false;    // rule 28: a life begins at the wall clock
  bool h_votes = false;                // rule 28: hybrid clocks are compared, not wall clocks
  bool server_stamp_any = false;       // rule 28: replicas take whatever stamp a coordinator gave
  bool mark_beyond_silent = false;     // rule 28: a hidden write is not reported

  // Batches, metadata: stamps are fixed once before anything is sent (rule 26), messages name the
  // incarnation of their table (rule 29), and the metadata group applies every command in order.
  bool batch_torn = false;                // rule 26: rows of one mutation are applied one by one
  bool replicas_stamp = false;            // rule 26: each replica gets a timestamp of its own
  bool old_incarnation_accepted = false;  // rule 29: a replica takes writes of a truncated table
  bool truncate_not_awaited = false;      // rule 29: TRUNCATE answers before W members know
  bool truncate_old_map = false;          // rule 29: by the members before it was proposed
  bool truncate_not_synced = false;       // rule 29: W members may forget it in a power cut
  bool stale_stamp_acked = false;         // rule 28: a replica's later stamp is ignored
  bool doubtful_stamp_kept = false;       // rule 28: stamps given in doubt are not given anew
  bool applied_not_learned = false;   // rule 29: what others have applied is not learned from them
  bool voters_even = false;           // rule 30: two voters
  bool harmful_change_kept = false;   // rule 8: a new set without a quorum is waited for
  bool truncate_not_local = false;    // rule 29: W of all data centres together know of it
  bool two_not_settled = false;       // rule 9: a member that comes to a set of two is not settled
  bool balance_second_alone = false;  // rule 9: a set's second move without the first one
  bool second_voter_alone = false;    // rule 30: one voter becomes two while a third is away
  bool voter_lost_beside_dead = false;  // rule 30: a voter leaves, and of the others half are dead
  bool third_voter_early = false;       // rule 30: of three voters one goes while it is leaving
  bool formats_ungated = false;         // what is written is of the newest format at once
  bool unread_command_skipped = false;  // a committed command that cannot be read is left out

  bool hung_leader = false;  // a leader whose disk hangs goes on leading

  // Conditional statements (Paxos, rule 27): a value is decided when W members accepted it, is
  // applied once, and is seen by every later SERIAL read. Registers are synced before they are
  // answered (21).
  bool lwt_read_not_accepted = false;  // rule 27: a SERIAL read answers what it was promised with
  bool lwt_failure_not_accepted = false;  // rule 27: so does a condition that does not hold
  bool lwt_promises_few = false;          // rule 27: one promise less than W
  bool lwt_accepts_few = false;           // rule 27: one accept less than W
  bool lwt_one_tally = false;            // rule 9: promises and accepts of either set count for one
  bool lwt_new_set_late = false;         // rule 9: the new set counts from "read new" on
  bool lwt_state_not_streamed = false;   // rule 27: a new member gets the rows alone
  bool lwt_promise_unsynced = false;     // rule 21: a promise is sent before it is on the disk
  bool lwt_accept_unsynced = false;      // rule 21: so is an accept
  bool lwt_commit_unsynced = false;      // rule 21: so is a commit
  bool lwt_rows_before_promise = false;  // rule 27: a replica reads before it promises
  bool lwt_commit_below_w = false;       // rule 27: a proposal follows a commit that is not on W
  bool lwt_open_committed = false;       // rule 27: what one has accepted is taken for decided
  bool lwt_late_commit_ignored = false;  // rule 27: a commit behind a later one leaves no rows
  bool lwt_ballots_pruned = false;       // rule 27: ballots go when a commit is settled
  bool lwt_ballot_without_start = false;  // rule 27: two lives of a node give the same ballots
  bool lwt_ballot_low = false;            // rule 27: a ballot is below what is overwritten
  bool lwt_completion_restamped = false;  // rule 27: who completes a value stamps it anew
  bool lwt_evaluated_twice = false;       // rule 27: a statement is tried again after an accept
  bool lwt_unavailable_late = false;      // rule 27: "unavailable" after messages were sent
  bool lwt_applied_at_decision = false;   // rule 27: applied before the commit is on W
  bool lwt_merge_not_written = false;     // rule 27: conditions are tested on what is not on W
  bool lwt_follows_wrong = false;         // rule 27: a completed value follows nothing
  bool lwt_accept_other_epoch = false;    // rule 27: an accept goes on under a later epoch
  bool lwt_floor_off = false;             // rule 18: values from before the horizon are completed
  bool lwt_ballot_pulled = false;         // rule 27: a client's timestamp moves a shard's ballots
  bool lwt_now_of_ballot = false;       // rule 27: a client's timestamp is the time of a condition
  bool lwt_now_goes_back = false;       // rule 27: a condition is of an earlier time than the last
  bool lwt_values_share_time = false;   // rule 27: two values of a partition have one timestamp
  bool lwt_old_row_above = false;       // rule 27: older rows are taken for hiding the new one
  bool lwt_ahead_over_floor = false;    // rule 18: a ballot ahead of time is above all floors
  bool lwt_not_decided_final = false;   // rule 27: what W have not accepted counts as gone
  bool lwt_rows_too_early = false;      // rule 27: rows from before the newest commit are tested
  bool lwt_refused_by_some = false;     // rule 27: what one has refused counts as accepted by none
  bool lwt_seen_unsynced = false;       // rule 21: an answer has what is not synced yet
  bool lwt_alone_promise_open = false;  // rule 27: a turn alone leaves others' promises open
  bool lwt_followed_forgotten = false;  // rule 27: of commits only registers of commits tell

  // Counters: a shard's total belongs to one life of one store; totals travel, never differences
  // (rule 25).
  bool counter_life_kept = false;       // rule 25: a leader goes on under the name of its last life
  bool counter_stay_kept = false;       // rule 25: so does a store that has left and come back
  bool counter_second_leader = false;   // rule 25: another leader is asked after a timeout
  bool counter_group_overlaps = false;  // rule 25: a group begins before the last one is written
  bool counter_acked_early = false;     // rule 1: answered when the leader alone has it

  // Logged batches: two nodes have all of it on the disk before any part is sent, and keep it until
  // every part is on W members (rule 26).
  bool batch_parts_first = false;       // rule 26: parts are sent before the entry is stored
  bool batch_one_holder = false;        // rule 26: one node alone holds the entry
  bool batch_done_at_hints = false;     // rule 26: an entry goes when its parts are hints
  bool batch_restamp_unlogged = false;  // rule 26: a new stamp is sent that no entry holds
  bool batch_horizon_past = false;      // rule 18: the horizon passes an entry
  bool batch_truncated_part = false;    // rule 26: the part of a truncated table counts as written

  // Indexes: a claim says that a row may have a value, the row is the truth. A claim is written in
  // its row's batch, by every way in (rule 23).
  bool claims_of_puts_only = false;     // rule 23: a row that is merged leaves no claim
  bool claims_not_of_merged = false;    // rule 23: nor does what streams, hints and repairs bring
  bool claims_not_of_commits = false;   // rule 23: nor do commits of conditional statements
  bool claims_not_kept = false;         // rule 23: claims go in another batch than their rows
  bool claim_gone_unwatched = false;    // rule 23: a claim goes although its row was written since
  bool claim_newer_than_row = false;    // rule 23: claims are compared with older rows
  bool claim_expires_by_clock = false;  // rule 23: a claim goes when its cell expires
  bool claim_gone_early = false;        // rule 23: of three, a claim goes that another may need
  bool disproved_not_named = false;     // rule 23: of three, one leaves out what it disproved
  bool index_from_one = false;          // rule 7: one member's claims are enough
  bool index_rows_from_one = false;     // rule 7: a row comes from those alone whose claims name it
  bool index_names_uncut = false;       // rule 5: names are taken past where another's end
  bool index_pages_by_value = false;    // rule 5: a page has the smallest values, not places
  bool build_without_barrier = false;   // rule 23: a build reads before older writes have ended
  bool build_forgets_marks = false;     // rule 23: rows without claims do not end a build
  bool unbuilt_answers = false;         // rule 23: a store answers before its index is built

  // Views: the tasks to update them are written in the batch of the base row, on each replica, and
  // go when the images are on W (rule 24).
  bool view_bound_forgotten = false;        // rule 24: a store that restarts has seen no stamps
  bool view_stamp_unheeded = false;         // rule 24: a read takes a stamp below one it has seen
  bool view_names_left_out = false;         // rule 24: nothing names what a row had
  bool view_ranges_forgotten = false;       // rule 24: deletions of ranges leave no tasks
  bool view_tasks_not_of_merged = false;    // rule 24: hints, repairs and streams leave no tasks
  bool view_built_without_barrier = false;  // rule 24: a build misses rows on their way to the disk
  bool view_unequal_taken = false;          // rule 24: an image is made although replies differ
  bool view_read_by_one = false;            // rule 24: an image is made of one replica's row
  bool view_settled_unread = false;         // rule 24: tasks go where the read was not answered
  bool view_settled_early = false;          // rule 24: tasks go before the images are on W
  bool view_old_names_left = false;         // rule 24: rows of names that are not current stay
  bool view_leaver_unasked = false;     // rule 24: who is no member any more is not asked for names
  bool view_old_schema_taken = false;   // rule 24: tasks are settled by who knows fewer views
  bool view_cursor_past_notes = false;  // rule 24: a row is read from behind a note that is there
  bool view_own_unawaited = false;  // rule 24: a single node answers before its views show a write

  // Formation of a cluster, hints.
  bool first_seed_founds = false;      // the first seed founds although others say nothing
  bool foreign_is_fatal = false;       // a node ends when it hears another cluster's refusal
  bool wanted_id_ignored = false;      // a node answers for the id that had its address before
  bool hint_count_per_remove = false;  // hints are counted down as they are removed, page by page
  bool hint_past_horizon = false;      // a hint from before the horizon is sent and taken
  bool hint_dated_late = false;        // a hint is dated when the write failed, not when it began
};

// TETRAD_MUTANT(name) asks for a switch. Without the definition it is a constant, so that the
// compiler drops the branch and a server's binary has none of this.
#ifdef TETRAD_DATA_MUTANTS
inline DataMutants data_mutants;
#define TETRAD_MUTANT(name) (::tetrad::base::data_mutants.name)
#else
#define TETRAD_MUTANT(name) false
#endif

}  // namespace tetrad::base
