// SPDX-License-Identifier: Apache-2.0
#include "replication/data_plane.h"

namespace tetrad::replication {

DataPlane::DataPlane(const NodeEnvironment& environment, ReplicationNode& node,
                     const DataPlaneOptions& options)
    : replicas_(environment.reactor, node.rpc(), node.meta(), node.clock(), environment.stores,
                environment.logger.named("replica")),
      hints_(environment.log, options.hints),
      coordinator_(environment.reactor, node.rpc(), node.meta(), replicas_, hints_, node.clock(),
                   options.coordinator, environment.logger.named("coordinator")),
      dispatcher_(environment.reactor, hints_, node.rpc(), node.meta(), options.hint_dispatch,
                  environment.logger.named("hints")) {}

Result<std::unique_ptr<DataPlane>> DataPlane::make(const NodeEnvironment& environment,
                                                   ReplicationNode& node,
                                                   DataPlaneOptions options) {
  std::unique_ptr<DataPlane> plane(new DataPlane(environment, node, options));
  TETRAD_TRY_VOID(plane->hints_.open());
  plane->dispatcher_.start();
  plane->coordinator_.metrics().register_in(environment.metrics, "");
  HintStore& hints = plane->hints_;
  environment.metrics.add("tetrad_replication_hints_stored_total",
                          "Mutations kept for replicas that missed them.", "",
                          hints.metrics().stored);
  environment.metrics.add("tetrad_replication_hints_replayed_total",
                          "Hints that their replicas took.", "", hints.metrics().replayed);
  environment.metrics.add("tetrad_replication_hints_refused_total",
                          "Hints that did not fit the limit.", "", hints.metrics().refused);
  return plane;
}

}  // namespace tetrad::replication
