// SPDX-License-Identifier: Apache-2.0
#include "replication/membership/join_request.h"

namespace tetrad::replication {

namespace {

constexpr uint8_t kJoinFormat = 1;

}  // namespace

Bytes encode_join(const JoinRequest& request) {
  Bytes body;
  base::ByteWriter writer(body);
  writer.u8(kJoinFormat);
  writer.raw(request.cluster_id.view());
  writer.bytes(request.cluster_name);
  encode_node_info(request.node, kFormatFirst, writer);
  writer.u64(request.token_seed);
  writer.bytes(request.node.client_address);
  return body;
}

Result<JoinRequest> decode_join(BytesView body) {
  base::ByteReader in(body);
  JoinRequest request;
  TETRAD_TRY(const uint8_t format, in.read_u8());
  if (format != kJoinFormat) return fail(ErrorCode::kProtocol, "join request format {}", format);
  TETRAD_TRY(const BytesView cluster, in.read_raw(16));
  request.cluster_id = Uuid::from_bytes(cluster);
  TETRAD_TRY(const BytesView name, in.read_bytes());
  request.cluster_name = std::string(name);
  TETRAD_TRY(request.node, decode_node_info(kFormatFirst, in));
  TETRAD_TRY(request.token_seed, in.read_u64());
  // An older node stops here; its client address is its address.
  if (in.remaining() != 0) {  // a node of kFormatClientAddress
    TETRAD_TRY(const BytesView client_address, in.read_bytes());
    request.node.client_address = std::string(client_address);
  }
  return request;
}

bool same_but_for_ring(const NodeInfo& known, const NodeInfo& now, ClusterFormat format) {
  return known.address == now.address && known.native_port == now.native_port &&
         known.internode_port == now.internode_port && known.admin_port == now.admin_port &&
         known.data_center == now.data_center && known.rack == now.rack &&
         known.version == now.version && known.format == now.format &&
         (known.client_address == now.client_address || format < kFormatClientAddress);
}

}  // namespace tetrad::replication
