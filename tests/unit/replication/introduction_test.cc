// SPDX-License-Identifier: Apache-2.0
#include "replication/membership/introduction.h"

#include <catch2/catch.hpp>

#include "tests/unit/partitioner/test_nodes.h"

namespace tetrad::replication {

namespace {

using partitioner::host_number;

Introduction fresh(uint8_t number) {
  Introduction node;
  node.host = host_number(number);
  node.cluster_name = "one";
  node.seeds = {"a:1", "b:1", "c:1"};
  return node;
}

Introduction member(uint8_t number, uint8_t cluster) {
  Introduction node = fresh(number);
  node.cluster_id.octets[0] = cluster;
  return node;
}

FormationStep::Kind step_of(const Introduction& self, const std::vector<SeedAnswer>& answers) {
  return next_formation_step(self, answers).kind;
}

using Kind = FormationStep::Kind;

}  // namespace

TEST_CASE("of fresh seeds that all answer alike the one with the least host id founds") {
  const std::vector<SeedAnswer> all = {{"a:1", fresh(7)}, {"b:1", fresh(3)}, {"c:1", fresh(9)}};
  CHECK(step_of(fresh(3), all) == Kind::kFound);
  CHECK(step_of(fresh(7), all) == Kind::kWait);
  CHECK(step_of(fresh(9), all) == Kind::kWait);
  // One that is no seed never founds.
  CHECK(step_of(fresh(1), all) == Kind::kWait);
}

TEST_CASE("a silent seed, another name and other seeds hold founding up, and are named") {
  std::vector<SeedAnswer> answers = {{"a:1", fresh(1)}, {"b:1", {}}, {"c:1", fresh(9)}};
  FormationStep step = next_formation_step(fresh(1), answers);
  CHECK(step.kind == Kind::kWait);
  CHECK(step.waits_for == "seed b:1 does not answer");
  CHECK(step.needs_order);
  answers[1].is_reached = true;  // somebody is there, who may know of a cluster
  step = next_formation_step(fresh(1), answers);
  CHECK(step.waits_for ==
        "seed b:1 takes connections, but no answer comes here (it hangs, or broadcast_address is "
        "not this node's own)");
  CHECK_FALSE(step.needs_order);
  answers[1].refusal = "it demands TLS";
  step = next_formation_step(fresh(1), answers);
  CHECK(step.kind == Kind::kWait);
  CHECK(step.waits_for == "this node and seed b:1 do not speak: it demands TLS");
  CHECK_FALSE(step.needs_order);
  answers[1].said = fresh(4);
  CHECK(step_of(fresh(1), answers) == Kind::kFound);
  answers[1].said->cluster_name = "two";
  step = next_formation_step(fresh(1), answers);
  CHECK(step.kind == Kind::kWait);
  CHECK(step.waits_for == "seed b:1 has the cluster_name 'two', not 'one'");
  answers[1].said = fresh(4);
  answers[1].said->seeds.pop_back();
  step = next_formation_step(fresh(1), answers);
  CHECK(step.kind == Kind::kWait);
  CHECK(step.waits_for == "seed b:1 was given other seeds (a:1,b:1, here a:1,b:1,c:1)");
}

TEST_CASE("where a seed has a cluster nobody founds, also not by order") {
  const std::vector<SeedAnswer> answers = {{"a:1", fresh(1)}, {"b:1", member(5, 8)}, {"c:1", {}}};
  Introduction self = fresh(1);
  for (const bool ordered : {false, true}) {
    self.found_ordered = ordered;
    const FormationStep step = next_formation_step(self, answers);
    CHECK(step.kind == Kind::kJoin);
    CHECK(step.members == std::vector<Endpoint>{"b:1"});
  }
  // A program that cannot introduce itself is asked to take this node in.
  CHECK(step_of(fresh(1), {{"a:1", fresh(1)}, {"b:1", {}, true}, {"c:1", {}}}) == Kind::kJoin);
}

TEST_CASE("by order a node founds although seeds are silent, of several ordered ones one") {
  Introduction self = fresh(5), other = fresh(2);
  self.found_ordered = true;
  CHECK(step_of(self, {{"a:1", self}, {"b:1", other}, {"c:1", {}}}) == Kind::kFound);
  other.found_ordered = true;
  CHECK(step_of(self, {{"a:1", self}, {"b:1", other}, {"c:1", {}}}) == Kind::kWait);
  CHECK(step_of(other, {{"a:1", self}, {"b:1", other}, {"c:1", {}}}) == Kind::kFound);
}

TEST_CASE("a node that one cluster has begun to take in goes to no other") {
  const Introduction self = member(5, 8);
  FormationStep step = next_formation_step(self, {{"a:1", member(1, 9)}, {"b:1", fresh(2)}});
  CHECK(step.kind == Kind::kWait);
  CHECK(step.waits_for.find("seed a:1 is of another cluster") != std::string::npos);
  step = next_formation_step(self, {{"a:1", member(1, 9)}, {"b:1", member(2, 8)}});
  CHECK(step.kind == Kind::kJoin);
  CHECK(step.members == std::vector<Endpoint>{"b:1"});
}

TEST_CASE("an introduction comes back from its bytes, and broken ones are refused") {
  Introduction node = member(5, 8);
  node.found_ordered = true;
  node.applied = MetaIndex{77};
  node.standing = Standing::kRemoved;
  const Bytes bytes = encode_introduction(node);
  const auto decoded = decode_introduction(bytes + "of a later program");
  REQUIRE(decoded);
  CHECK(encode_introduction(*decoded) == bytes);
  CHECK(decoded->applied == MetaIndex{77});
  CHECK(decoded->standing == Standing::kRemoved);
  for (size_t size = 0; size < bytes.size(); ++size)
    CHECK_FALSE(decode_introduction(BytesView(bytes).substr(0, size)));
}

}  // namespace tetrad::replication
