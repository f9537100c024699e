// SPDX-License-Identifier: Apache-2.0
// How answers are shown to people: nodetool's forms where it has one, for scripts that read them.
// Each prints one answer and gives the exit code.
//
// They are called when --json was not said. A field that is missing in the answer throws json's
// exception, which main.cc reports as an answer of no Tetrad node.
#pragma once

#include <nlohmann/json.hpp>

#include "tools/tetractl/verb.h"

namespace tetrad::tools {

// What the names say, of the answer to the path that the table of verbs has beside it.
int print_nothing(const nlohmann::json& answer, const Invocation& call);
int print_compaction_runs(const nlohmann::json& info, const Invocation& call);
int print_info(const nlohmann::json& info, const Invocation& call);
int print_version(const nlohmann::json& info, const Invocation& call);
int print_binary(const nlohmann::json& info, const Invocation& call);
int print_gossip_runs(const nlohmann::json& info, const Invocation& call);
int print_handoff_runs(const nlohmann::json& info, const Invocation& call);
int print_hint_window(const nlohmann::json& info, const Invocation& call);
int print_seeds(const nlohmann::json& info, const Invocation& call);
int print_default_factor(const nlohmann::json& info, const Invocation& call);
int print_trace_probability(const nlohmann::json& info, const Invocation& call);
int print_log_levels(const nlohmann::json& info, const Invocation& call);
int print_endpoints(const nlohmann::json& answer, const Invocation& call);
int print_cidr_groups(const nlohmann::json& answer, const Invocation& call);
int print_cidr_filtering(const nlohmann::json& answer, const Invocation& call);
// nodetool's clientstats: sums by user, each connection with --all, or sums by version.
int print_clients(const nlohmann::json& answer, const Invocation& call);
// Of Tetrad only: tables of what the JSON has.
int print_partitions(const nlohmann::json& partitions, const Invocation& call);
int print_moves(const nlohmann::json& plan, const Invocation& call);
int print_certificates(const nlohmann::json& answer, const Invocation& call);
// How far a change of keys has come: files by key.
int print_disk_encryption(const nlohmann::json& answer, const Invocation& call);
int print_losses(const nlohmann::json& answer, const Invocation& call);

}  // namespace tetrad::tools
