// SPDX-License-Identifier: Apache-2.0
// A conditional statement that is always applied.
#pragma once

#include <optional>
#include <string>

#include "replication/coordinator/conditional.h"
#include "tests/simulation/support/sim_cluster.h"
#include "tests/simulation/support/tables.h"

namespace tetrad::simulation {

/// Writes the row whatever it is.
class WriteRow final : public replication::ConditionalStatement {
 public:
  WriteRow(TableIncarnation incarnation, std::string key)
      : incarnation_(incarnation), key_(std::move(key)) {}
  storage::ReadCommand read_command() const override {
    const storage::Mutation row = row_of(incarnation_, key_);
    storage::ReadCommand command;
    command.incarnation = incarnation_;
    command.partition_key = row.partition_key;
    command.position = row.position;
    command.rows = {""};
    return command;
  }
  Task<Result<std::optional<storage::Mutation>>> decide(
      const storage::ReadResult&, replication::ConditionalMoment moment) override {
    storage::Mutation row = row_of(incarnation_, key_);
    storage::RowRecord record;
    record.liveness.timestamp_us = moment.timestamp_us;
    row.rows.front().record.clear();
    storage::encode_row_record(record, row.rows.front().record);
    co_return std::optional<storage::Mutation>(std::move(row));
  }

 private:
  const TableIncarnation incarnation_;
  const std::string key_;
};

/// Through the node; two seconds at most.
inline Task<void> write_conditional(SimNode* node, TableIncarnation incarnation, std::string key,
                                    std::optional<Result<bool>>* answer,
                                    int64_t contention_us = 2'000'000) {
  WriteRow statement(incarnation, std::move(key));
  replication::ConditionalOptions options;
  options.deadline = {node->reactor().now_us() + 2'000'000};
  options.contention_deadline = {node->reactor().now_us() + contention_us};
  auto applied = co_await node->data().coordinator().write_if(statement, options);
  answer->emplace(std::move(applied));
}

}  // namespace tetrad::simulation
