// SPDX-License-Identifier: Apache-2.0
// Aggregates that replicas fold give what the coordinator makes of the rows: of every type, page by
// page, over what is deleted, expired, static and null. Bytes of a peer that say nonsense are
// refused.
#include "cql/execute/aggregate_fold.h"

#include <catch2/catch.hpp>

#include "tests/support/local_cluster.h"

namespace tetrad::tests {
namespace {

constexpr std::string_view kTypes[] = {"tinyint", "smallint", "int",     "bigint", "varint",
                                       "float",   "double",   "decimal", "text",   "ascii",
                                       "blob",    "boolean",  "date",    "time",   "timestamp",
                                       "uuid",    "timeuuid", "inet"};
constexpr size_t kNumbers = 8;  // the first so many are numbers

struct Fixture : LocalCluster {
  explicit Fixture(uint64_t seed = 1) : random_(seed) {
    REQUIRE(cql("CREATE KEYSPACE ks WITH replication = {'class': 'SimpleStrategy', "
                "'replication_factor': 1}") == "ok");
    REQUIRE(cql("USE ks") == "ok");
  }

  std::string digits(size_t most) {
    std::string text;
    for (size_t n = 1 + random_.below(most); n > 0; --n)
      text += static_cast<char>('0' + random_.below(10));
    return text;
  }
  std::string hex(size_t count) {
    std::string text;
    for (; count > 0; --count) text += "0123456789abcdef"[random_.below(16)];
    return text;
  }
  std::string literal(std::string_view type) {
    const std::string sign = random_.one_in(2) ? "-" : "";
    const auto integer = [&](int bits) {
      return std::to_string(static_cast<int64_t>(random_.next()) >> (64 - bits));
    };
    if (type == "tinyint") return integer(8);
    if (type == "smallint") return integer(16);
    if (type == "int") return integer(32);
    if (type == "bigint" || type == "timestamp") return integer(random_.one_in(2) ? 64 : 20);
    if (type == "varint") return sign + "1" + digits(40);
    if (type == "decimal")
      return sign + "1" + digits(12) + (random_.one_in(2) ? "." + digits(9) : "");
    if (type == "float" || type == "double") {
      if (random_.one_in(40)) return sign + (random_.one_in(3) ? "NaN" : "Infinity");
      if (random_.one_in(5))
        return sign + "1.0" + digits(3) + "e" + (type == "float" ? "38" : "308");
      return sign + digits(9) + "." + digits(9);
    }
    if (type == "text" || type == "ascii") return "'" + hex(random_.below(5)) + "'";
    if (type == "blob") return "0x" + hex(2 * random_.below(4));
    if (type == "boolean") return random_.one_in(2) ? "true" : "false";
    if (type == "date") return "'" + std::to_string(1900 + random_.below(200)) + "-03-01'";
    if (type == "time") return "'0" + digits(1) + ":00:00'";
    if (type == "inet")
      return random_.one_in(3) ? "'::" + hex(2) + "'" : "'10.0.0." + digits(2) + "'";
    return hex(8) + "-" + hex(4) + (type == "timeuuid" ? "-1" : "-4") + hex(3) + "-8" + hex(3) +
           "-" + hex(12);
  }

  /// The answer of the replicas, which must be that of the coordinator.
  enum class Way { kFolded, kGivenUp, kRead };
  std::string both(std::string_view statement, Way way = Way::kFolded) {
    INFO(statement);
    const uint64_t before = coordinator->folded, given_up_before = coordinator->given_up;
    const std::string folded = cql(statement);
    CHECK((coordinator->folded > before) == (way != Way::kRead));
    const bool given_up = coordinator->given_up > given_up_before;
    const bool failed = folded.starts_with("error");
    CHECK((failed || given_up == (way == Way::kGivenUp)));
    coordinator->folds = false;
    const std::string read = cql(statement);
    coordinator->folds = true;
    CHECK(folded == read);
    return folded;
  }

  base::Random random_;
};

std::string columns(std::string_view name, std::string_view separator, std::string_view pattern) {
  std::string text;
  for (const std::string_view type : kTypes) {
    if (!text.empty()) text += separator;
    for (const char c : pattern) {
      if (c == '#') {
        text += fmt::format("{}_{}", name, type);
      } else if (c == '@') {
        text += type;
      } else {
        text += c;
      }
    }
  }
  return text;
}

}  // namespace

TEST_CASE("what replicas fold is what the coordinator makes of the rows") {
  for (uint64_t seed = 1; seed <= 12; ++seed) {
    INFO("seed=" << seed);
    Fixture f(seed);
    const std::string_view type = kTypes[seed % std::size(kTypes)];
    const std::string order = seed % 2 != 0 ? " WITH CLUSTERING ORDER BY (c DESC, d ASC)" : "";
    REQUIRE(f.cql(fmt::format(
                "CREATE TABLE t (k int, c {}, d int, {}, {}, PRIMARY KEY (k, c, d)){}", type,
                columns("v", ", ", "# @"), columns("s", ", ", "# @ static"), order)) == "ok");
    const auto random_column = [&](std::string_view name, std::string& value) {
      const std::string_view of = kTypes[f.random_.below(std::size(kTypes))];
      value = f.random_.one_in(8) ? "null" : f.literal(of);
      return fmt::format("{}_{}", name, of);
    };
    std::vector<std::string> rows;
    for (int i = 0; i < 150; ++i) {
      const auto k = f.random_.below(12);
      std::string where = fmt::format("k = {}", k), set, value;
      if (!f.random_.one_in(6)) {
        if (rows.empty() || f.random_.one_in(2))
          rows.push_back(
              fmt::format("k = {} AND c = {} AND d = {}", k, f.literal(type), f.random_.below(3)));
        where = rows[f.random_.below(rows.size())];
      }
      const bool is_static = where.find("AND") == std::string::npos;
      for (int n = 0; n < 5; ++n) {
        const std::string column = random_column(is_static ? "s" : "v", value);
        if (set.find(column + " ") == std::string::npos)
          set += (set.empty() ? "" : ", ") + column + " = " + value;
      }
      // A TTL of one second is over after the clock's next step below.
      const std::string ttl = f.random_.one_in(8) ? " USING TTL 1" : "";
      INFO(where << " " << set);
      if (f.random_.one_in(12)) {
        REQUIRE(f.cql("DELETE FROM t WHERE " + where) == "ok");
      } else {
        REQUIRE(f.cql("UPDATE t" + ttl + " SET " + set + " WHERE " + where) == "ok");
      }
      if (i == 100) f.reactor.advance_us(2'000'000);
    }
    std::string numbers;
    for (const char* name : {"v", "s"}) {
      for (size_t i = 0; i < kNumbers; ++i)
        numbers += fmt::format(", sum({0}_{1}), avg({0}_{1})", name, kTypes[i]);
    }
    std::string whole_numbers;
    for (size_t i = 0; i < kNumbers; ++i) {
      if (kTypes[i] == "float" || kTypes[i] == "double") continue;
      whole_numbers += fmt::format(", sum(v_{0})", kTypes[i]);
      if (kTypes[i] != "decimal") whole_numbers += fmt::format(", avg(s_{0})", kTypes[i]);
    }
    const std::string extremes = ", min(k), max(c), min(c), max(d), count(d), " +
                                 columns("v", ", ", "min(#), max(#), count(#)") + ", " +
                                 columns("s", ", ", "min(#), max(#), count(#)");
    const std::string key = fmt::format("k = {}", f.random_.below(12));
    for (const std::string& where : std::vector<std::string>{
             "", " WHERE " + key, " WHERE token(k) > 0", " WHERE token(k) <= -1000",
             " WHERE " + rows.front(), " WHERE " + key + " AND c > " + f.literal(type),
             " WHERE " + key + " ORDER BY c " + (seed % 3 == 0 ? "ASC" : "DESC")}) {
      for (const std::string& list : {numbers, whole_numbers, extremes}) {
        f.both("SELECT count(*)" + list + " FROM t" + where);
        f.both("SELECT " + list.substr(2) + " FROM t" + where);
      }
    }
    f.both("SELECT max(v_text), sum(s_int) FROM t WHERE k IN (1, 2)", Fixture::Way::kRead);
    f.both("SELECT sum(v_int), max(v_text) FROM t WHERE v_int > 0 ALLOW FILTERING",
           Fixture::Way::kRead);
    f.both("SELECT sum(v_int), max(v_text) FROM t GROUP BY k", Fixture::Way::kRead);
  }
}

TEST_CASE("what is not folded is read") {
  Fixture f;
  REQUIRE(f.cql("CREATE TABLE t (k int PRIMARY KEY, v int, n varint, e decimal, x text, "
                "l list<int>, fl frozen<list<int>>)") == "ok");
  REQUIRE(f.cql("INSERT INTO t (k, v, n, e, x, l, fl) VALUES (1, 2, 3, 4.5, 'a', [1], [2])") ==
          "ok");
  REQUIRE(f.cql("INSERT INTO t (k, v) VALUES (2, 7)") == "ok");
  CHECK(f.both("SELECT sum(v), count(1) FROM t") == "system.sum(v) | count\n9 | 2");
  CHECK(f.both("SELECT sum(v) + max(n) FROM t").ends_with("\n12"));
  f.both("SELECT JSON sum(v), max(x) FROM t");
  for (const char* list :
       {"v, sum(v)", "sum(v), max(l)", "count(l)", "max(fl)", "sum(k), writetime(v)",
        "max(cast(v AS text))", "sum(v), x", "max(l[0])"}) {
    f.both(fmt::format("SELECT {} FROM t", list), Fixture::Way::kRead);
  }
  // Values that a state does not carry: the replicas give up, the coordinator reads.
  REQUIRE(f.cql("INSERT INTO t (k, n, e, x) VALUES (3, 1" + std::string(2000, '0') +
                ", 1e-2000, '" + std::string(5000, 'x') + "')") == "ok");
  for (const char* list : {"sum(n)", "avg(n)", "sum(e)", "avg(e)", "max(x)", "min(x)"}) {
    f.both(fmt::format("SELECT {} FROM t", list), Fixture::Way::kGivenUp);
  }
  f.both("SELECT count(x), max(n), min(e) FROM t");
  REQUIRE(f.cql("ALTER TABLE t DROP x") == "ok");
  f.both("SELECT sum(v) FROM t", Fixture::Way::kRead);
}

namespace {

/// What a statement of one partition, or in order, had folded; the last state goes to `states`.
Bytes spec_of(LocalCluster& f, std::string_view statement, std::vector<Bytes>& states) {
  Bytes spec, last;
  f.coordinator->on_fold = [&](BytesView of, BytesView state) {
    spec = Bytes(of);
    last = Bytes(state);
  };
  f.cql(statement);
  f.coordinator->on_fold = nullptr;
  states.push_back(std::move(last));
  return spec;
}

}  // namespace

TEST_CASE("states join in any grouping") {
  Fixture f;
  REQUIRE(f.cql("CREATE TABLE t (k int PRIMARY KEY, " + columns("v", ", ", "# @") + ")") == "ok");
  std::string list = "count(*), " + columns("v", ", ", "min(#), max(#), count(#)");
  for (const char* type : {"tinyint", "smallint", "int", "bigint", "varint"})
    list += fmt::format(", sum(v_{0}), avg(v_{0})", type);
  list += ", sum(v_decimal)";
  std::vector<Bytes> states;
  Bytes spec;
  for (int i = 0; i < 40; ++i) {
    std::string names, values;
    for (const std::string_view type : kTypes) {
      if (f.random_.one_in(5)) continue;
      names += fmt::format(", v_{}", type);
      values += ", " + f.literal(type);
    }
    REQUIRE(f.cql(fmt::format("INSERT INTO t (k{}) VALUES ({}{})", names, i, values)) == "ok");
    spec = spec_of(f, fmt::format("SELECT {} FROM t WHERE k = {}", list, i), states);
  }
  const auto plan = cql::read_aggregate_fold(spec);
  REQUIRE(plan.has_value());
  CHECK_FALSE((*plan)->in_order());
  CHECK((*plan)->spec() == spec);
  const auto join = [&](std::span<const Bytes> parts) {
    auto joined = (*plan)->join(parts);
    REQUIRE(joined.has_value());
    return std::move(*joined);
  };
  REQUIRE(states.size() == 40);
  const Bytes whole = join(states);
  for (int i = 0; i < 200; ++i) {
    // Random brackets around the same order.
    std::vector<Bytes> parts = states;
    while (parts.size() > 1) {
      const size_t at = f.random_.below(parts.size() - 1);
      const Bytes two[] = {parts[at], parts[at + 1]};
      parts[at] = join(two);
      parts.erase(parts.begin() + static_cast<ptrdiff_t>(at) + 1);
    }
    REQUIRE(parts.front() == whole);
  }
  CHECK(join({{Bytes(), whole, Bytes()}}) == whole);
}

TEST_CASE("folds and states of a peer that say nonsense are refused") {
  Fixture f;
  REQUIRE(f.cql("CREATE TABLE t (k int, c decimal, " + columns("v", ", ", "# @") +
                ", PRIMARY KEY (k, c))") == "ok");
  for (int i = 0; i < 5; ++i)
    REQUIRE(f.cql(fmt::format("INSERT INTO t (k, c, v_int, v_decimal, v_double) VALUES (1, {}, 1, "
                              "2.5, 1e308)",
                              i)) == "ok");
  std::string list = "count(*), max(k), min(c), " + columns("v", ", ", "min(#), max(#), count(#)");
  for (size_t i = 0; i < kNumbers; ++i) list += fmt::format(", sum(v_{0}), avg(v_{0})", kTypes[i]);
  std::vector<Bytes> states;
  const Bytes spec = spec_of(f, "SELECT " + list + " FROM t", states);
  REQUIRE_FALSE(states.back().empty());
  for (size_t size = 0; size < spec.size(); ++size)
    CHECK_FALSE(cql::read_aggregate_fold(BytesView(spec).substr(0, size)).has_value());
  CHECK_FALSE(cql::read_aggregate_fold(spec + "x").has_value());
  const auto plan = cql::read_aggregate_fold(spec);
  REQUIRE(plan.has_value());
  CHECK((*plan)->go_on(states.back(), 0).has_value());
  for (size_t size = 1; size < states.back().size(); ++size)
    CHECK_FALSE((*plan)->go_on(BytesView(states.back()).substr(0, size), 0).has_value());
  CHECK_FALSE((*plan)->go_on(states.back() + "x", 0).has_value());
  for (int i = 0; i < 20'000; ++i) {
    Bytes bad_spec = spec, bad_state = states[f.random_.below(states.size())];
    for (Bytes* bytes : {&bad_spec, &bad_state}) {
      if (bytes->empty() || f.random_.one_in(3)) continue;
      for (auto n = f.random_.below(4); n > 0; --n)
        (*bytes)[f.random_.below(bytes->size())] = static_cast<char>(f.random_.next());
    }
    const auto some_plan = cql::read_aggregate_fold(bad_spec);
    if (!some_plan) continue;
    const auto fold = (*some_plan)->go_on(bad_state, 0);
    if (!fold) continue;
    storage::RowRecord row;
    row.liveness.timestamp_us = 1;
    storage::Cell cell;
    cell.column_id = static_cast<uint32_t>(f.random_.below(20));
    cell.timestamp_us = 1;
    cell.value = BytesView(bad_state).substr(0, f.random_.below(9));
    row.cells.push_back(cell);
    if (!(*fold)->begin_partition({}, Bytes(4, '\0'), row, f.random_.one_in(2))) continue;
    (void)(*fold)->take_row(BytesView(bad_state).substr(0, 3), row);
    const auto state = (*fold)->state();
    if (state) (void)(*some_plan)->join({{*state, bad_state}});
  }
}

}  // namespace tetrad::tests
