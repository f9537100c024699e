// SPDX-License-Identifier: Apache-2.0
// gocql, Apache's v2: versions and compression, schema, types, statements, the ring, a node that dies.
package drivers

import (
	"bytes"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"math"
	"math/big"
	"os"
	"os/exec"
	"reflect"
	"strings"
	"sync"
	"testing"
	"time"

	gocql "github.com/apache/cassandra-gocql-driver/v2"
	"github.com/apache/cassandra-gocql-driver/v2/lz4"
	"github.com/apache/cassandra-gocql-driver/v2/snappy"
	"gopkg.in/inf.v0"
)

func TestVersionsAndCompressions(t *testing.T) {
	run(t, shared, "CREATE TABLE ways (k int PRIMARY KEY, v text, b blob)")
	compressors := map[string]gocql.Compressor{"none": nil, "lz4": lz4.LZ4Compressor{}, "snappy": snappy.SnappyCompressor{}}
	for version := 3; version <= 5; version++ {
		for name, compressor := range compressors {
			if version == 5 && name == "snappy" {
				continue
			}
			t.Run(fmt.Sprintf("v%d_%s", version, name), func(t *testing.T) {
				session := open(t, func(c *gocql.ClusterConfig) { c.ProtoVersion, c.Compressor = version, compressor })
				text, blob := strings.Repeat("tetrad ", 30000), make([]byte, 200000)
				for i := range blob {
					blob[i] = byte(i * 7919 >> 3)
				}
				for key := 0; key < 6; key++ {
					run(t, session, "INSERT INTO ways (k, v, b) VALUES (?, ?, ?)", key, text, blob)
					var readText string
					var readBlob []byte
					must(t, session.Query("SELECT v, b FROM ways WHERE k = ?", key).Scan(&readText, &readBlob))
					if readText != text || !bytes.Equal(readBlob, blob) {
						t.Fatal("other values came back")
					}
				}
			})
		}
	}
}

func TestRequestCharge(t *testing.T) {
	run(t, shared, "CREATE TABLE charged (k int PRIMARY KEY, v text)")
	run(t, shared, "INSERT INTO charged (k, v) VALUES (1, ?)", strings.Repeat("x", 1024))
	for version := 4; version <= 5; version++ {
		session := open(t, func(c *gocql.ClusterConfig) { c.ProtoVersion = version })
		charge := func(statement string, level gocql.Consistency, asked map[string][]byte) []byte {
			iter := session.Query(statement).Consistency(level).CustomPayload(asked).Iter()
			payload := iter.GetCustomPayload()
			must(t, iter.Close())
			return payload["RequestCharge"]
		}
		asked := map[string][]byte{"RequestCharge": {1}}
		expect := func(statement string, level gocql.Consistency, units float64) {
			t.Helper()
			for i := 0; i < 2; i++ {
				got := charge(statement, level, asked)
				if len(got) != 8 || math.Float64frombits(binary.BigEndian.Uint64(got)) != units {
					t.Fatalf("v%d %s at %v: %v in place of %v", version, statement, level, got, units)
				}
			}
		}
		expect("SELECT * FROM charged WHERE k = 1", gocql.One, 1)
		expect("SELECT * FROM charged WHERE k = 1", gocql.LocalQuorum, 2)
		expect("UPDATE charged SET v = 'y' WHERE k = 2", gocql.Quorum, 5)
		if got := charge("SELECT * FROM charged WHERE k = 1", gocql.One, nil); got != nil {
			t.Fatal(got)
		}
	}
}

func TestVersionIsDiscovered(t *testing.T) {
	session := open(t, func(c *gocql.ClusterConfig) { c.ProtoVersion = 0 })
	var release string
	must(t, session.Query("SELECT release_version FROM system.local WHERE key='local'").Scan(&release))
	if !strings.HasPrefix(release, "5.0") {
		t.Fatal(release)
	}
}

func TestSchemaMetadata(t *testing.T) {
	run(t, shared, `CREATE TABLE shown (a int, b text, c timeuuid, s text static, m map<text, frozen<list<int>>>, v tuple<int, text>,
		PRIMARY KEY ((a, b), c)) WITH CLUSTERING ORDER BY (c DESC) AND comment = 'shown'`)
	must(t, shared.AwaitSchemaAgreement(context.Background()))
	var table *gocql.TableMetadata
	eventually(t, 10*time.Second, "the table in the metadata", func() bool {
		meta, err := shared.KeyspaceMetadata(keyspace)
		must(t, err)
		table = meta.Tables["shown"]
		return table != nil
	})
	if len(table.PartitionKey) != 2 || table.PartitionKey[0].Name != "a" || table.PartitionKey[1].Name != "b" {
		t.Fatal(table.PartitionKey)
	}
	if len(table.ClusteringColumns) != 1 || table.ClusteringColumns[0].Order != gocql.DESC {
		t.Fatal(table.ClusteringColumns)
	}
	if table.Columns["s"].Kind != gocql.ColumnStatic || table.Columns["m"].Type.Type() != gocql.TypeMap || len(table.Columns) != 6 {
		t.Fatal(table.Columns)
	}
	meta, err := shared.KeyspaceMetadata(keyspace)
	must(t, err)
	if !strings.HasSuffix(meta.StrategyClass, "SimpleStrategy") || !meta.DurableWrites {
		t.Fatal(meta.StrategyClass)
	}
}

func TestSchemaAgreesAndANameIsFreeAtOnce(t *testing.T) {
	for round := 0; round < 4; round++ {
		run(t, shared, "CREATE TABLE reborn (k int PRIMARY KEY, v int)")
		must(t, shared.AwaitSchemaAgreement(context.Background()))
		var count int
		must(t, shared.Query("SELECT count(*) FROM reborn").Scan(&count))
		if count != 0 {
			t.Fatal("old rows came back")
		}
		for key := 0; key < 10; key++ {
			run(t, shared, "INSERT INTO reborn (k, v) VALUES (?, ?)", key, round)
		}
		run(t, shared, "DROP TABLE reborn")
	}
	run(t, shared, "CREATE TABLE IF NOT EXISTS exists_once (k int PRIMARY KEY)")
	var exists *gocql.RequestErrAlreadyExists
	if err := shared.Query("CREATE TABLE exists_once (k int PRIMARY KEY)").Exec(); !errors.As(err, &exists) || exists.Table != "exists_once" {
		t.Fatal(err)
	}
}

func decimal(text string) *inf.Dec {
	value, _ := new(inf.Dec).SetString(text)
	return value
}

func integer(text string) *big.Int {
	value, _ := new(big.Int).SetString(text, 10)
	return value
}

func TestScalarTypes(t *testing.T) {
	uuid, _ := gocql.ParseUUID("f47ac10b-58cc-4372-a567-0e02b2c3d479")
	timeuuid, _ := gocql.ParseUUID("d2177dd0-eaa2-11de-a572-001b779c76e3")
	stamp := time.Date(2024, 2, 29, 12, 34, 56, 789000000, time.UTC)
	cases := []struct {
		cqlType string
		values  []interface{}
	}{
		{"ascii", []interface{}{"", "plain"}},
		{"bigint", []interface{}{int64(0), int64(-1), int64(math.MaxInt64), int64(math.MinInt64)}},
		{"blob", []interface{}{[]byte{}, []byte{0, 255, 128}}},
		{"boolean", []interface{}{true, false}},
		{"date", []interface{}{time.Date(2024, 2, 29, 0, 0, 0, 0, time.UTC), time.Date(1900, 1, 1, 0, 0, 0, 0, time.UTC)}},
		{"decimal", []interface{}{decimal("1.10"), decimal("-0.000001"), decimal("123456789012345678901234567890.5")}},
		{"double", []interface{}{0.0, 1.5, math.Inf(1), math.MaxFloat64}},
		{"duration", []interface{}{gocql.Duration{Months: 1, Days: 2, Nanoseconds: 3}, gocql.Duration{Months: -1, Days: -2, Nanoseconds: -3}}},
		{"float", []interface{}{float32(0), float32(-2.5)}},
		{"inet", []interface{}{"127.0.0.1", "2001:db8::1"}},
		{"int", []interface{}{0, -1, math.MaxInt32, math.MinInt32}},
		{"smallint", []interface{}{int16(0), int16(-1), int16(math.MaxInt16), int16(math.MinInt16)}},
		{"text", []interface{}{"", "naïve 漢字 😀", "\x00", strings.Repeat("x", 70000)}},
		{"time", []interface{}{time.Duration(0), 86399999999999 * time.Nanosecond}},
		{"timestamp", []interface{}{stamp, time.Date(1900, 1, 1, 0, 0, 0, 0, time.UTC)}},
		{"timeuuid", []interface{}{timeuuid}},
		{"tinyint", []interface{}{int8(0), int8(127), int8(-128)}},
		{"uuid", []interface{}{uuid, gocql.UUID{}}},
		{"varchar", []interface{}{"same as text"}},
		{"varint", []interface{}{integer("0"), integer("-129"), integer("1606938044258990275541962092341162602522202993782792835301376")}},
		{"list<int>", []interface{}{[]int{3, 1, 2, 1}}},
		{"set<text>", []interface{}{[]string{"a", "b", "é"}}},
		{"map<text, int>", []interface{}{map[string]int{"": 1, "x": 2}}},
		{"frozen<list<frozen<map<int, text>>>>", []interface{}{[]map[int]string{{1: "a"}, {-1: "b", 2: ""}}}},
	}
	for number, c := range cases {
		t.Run(c.cqlType, func(t *testing.T) {
			table := fmt.Sprintf("type_%d", number)
			run(t, shared, fmt.Sprintf("CREATE TABLE %s (k int PRIMARY KEY, v %s)", table, c.cqlType))
			for key, value := range c.values {
				run(t, shared, fmt.Sprintf("INSERT INTO %s (k, v) VALUES (?, ?)", table), key, value)
				read := reflect.New(reflect.TypeOf(value))
				must(t, shared.Query(fmt.Sprintf("SELECT v FROM %s WHERE k = ?", table), key).Scan(read.Interface()))
				got := read.Elem().Interface()
				same := reflect.DeepEqual(got, value)
				switch expected := value.(type) {
				case time.Time:
					same = expected.Equal(got.(time.Time))
				case *inf.Dec:
					same = expected.Cmp(got.(*inf.Dec)) == 0 && expected.Scale() == got.(*inf.Dec).Scale()
				case *big.Int:
					same = expected.Cmp(got.(*big.Int)) == 0
				case []byte:
					same = bytes.Equal(expected, got.([]byte))
				}
				if !same {
					t.Fatalf("%v went in, %v came out", value, got)
				}
			}
			run(t, shared, fmt.Sprintf("INSERT INTO %s (k, v) VALUES (?, ?)", table), 99, nil)
			row := map[string]interface{}{}
			must(t, shared.Query(fmt.Sprintf("SELECT k, v FROM %s WHERE k = 99", table)).MapScan(row))
		})
	}
}

func TestTuplesAndUnset(t *testing.T) {
	run(t, shared, "CREATE TABLE tuples (k int PRIMARY KEY, t tuple<int, text, boolean>, v int)")
	run(t, shared, "INSERT INTO tuples (k, t, v) VALUES (1, (?, ?, ?), 5)", 7, "seven", true)
	var number int
	var text string
	var flag bool
	must(t, shared.Query("SELECT t FROM tuples WHERE k = 1").Scan(&number, &text, &flag))
	if number != 7 || text != "seven" || !flag {
		t.Fatal(number, text, flag)
	}
	run(t, shared, "INSERT INTO tuples (k, v) VALUES (?, ?)", 1, gocql.UnsetValue)
	var v *int
	must(t, shared.Query("SELECT v FROM tuples WHERE k = 1").Scan(&v))
	if v == nil || *v != 5 {
		t.Fatal("an unset value touched the column")
	}
	run(t, shared, "INSERT INTO tuples (k, v) VALUES (?, ?)", 1, nil)
	must(t, shared.Query("SELECT v FROM tuples WHERE k = 1").Scan(&v))
	if v != nil {
		t.Fatal("a null left the column")
	}
}

func fillWide(t *testing.T) {
	run(t, shared, "CREATE TABLE IF NOT EXISTS wide (k int, c int, v text, PRIMARY KEY (k, c))")
	for k := 0; k < 3; k++ {
		batch := shared.Batch(gocql.UnloggedBatch)
		for c := 0; c < 100; c++ {
			batch.Query("INSERT INTO wide (k, c, v) VALUES (?, ?, ?)", k, c, fmt.Sprintf("v%d.%d", k, c))
		}
		must(t, batch.Exec())
	}
}

func TestPaging(t *testing.T) {
	fillWide(t)
	for _, size := range []int{1, 7, 100, 299, 300, 5000} {
		iterator := shared.Query("SELECT k, c FROM wide").PageSize(size).Iter()
		seen := map[[2]int]bool{}
		var k, c int
		for iterator.Scan(&k, &c) {
			seen[[2]int{k, c}] = true
		}
		must(t, iterator.Close())
		if len(seen) != 300 {
			t.Fatalf("page size %d: %d rows", size, len(seen))
		}
	}
	var state []byte
	next := 99
	for pages := 0; ; pages++ {
		iterator := shared.Query("SELECT c FROM wide WHERE k = 1 ORDER BY c DESC").PageSize(30).PageState(state).Iter()
		state = iterator.PageState()
		scanner := iterator.Scanner()
		for scanner.Next() {
			var c int
			must(t, scanner.Scan(&c))
			if c != next {
				t.Fatalf("%d came instead of %d", c, next)
			}
			next--
		}
		must(t, scanner.Err())
		if len(state) == 0 {
			break
		}
	}
	if next != -1 {
		t.Fatal("rows are missing from", next)
	}
}

func TestBatches(t *testing.T) {
	run(t, shared, "CREATE TABLE batched (k int, c int, v text, PRIMARY KEY (k, c))")
	for _, kind := range []gocql.BatchType{gocql.LoggedBatch, gocql.UnloggedBatch} {
		batch := shared.Batch(kind).WithTimestamp(int64(1000) + int64(kind))
		for c := 0; c < 20; c++ {
			batch.Query("INSERT INTO batched (k, c, v) VALUES (?, ?, ?)", int(kind), c, "v")
		}
		batch.Query("DELETE FROM batched WHERE k = ? AND c = ?", int(kind), 7)
		must(t, batch.Exec())
		var count int
		var stamp int64
		must(t, shared.Query("SELECT count(*), max(writetime(v)) FROM batched WHERE k = ?", int(kind)).Scan(&count, &stamp))
		if count != 19 || stamp != int64(1000)+int64(kind) {
			t.Fatal(count, stamp)
		}
	}
}

func TestErrors(t *testing.T) {
	run(t, shared, "CREATE TABLE errs (k int, c int, v text, PRIMARY KEY (k, c))")
	cases := []struct {
		statement string
		code      int
		words     string
	}{
		{"SELEC * FROM errs", gocql.ErrCodeSyntax, "no viable alternative at input 'SELEC'"},
		{"SELECT * FROM nosuchtable", gocql.ErrCodeInvalid, "table nosuchtable does not exist"},
		{"SELECT nosuch FROM errs", gocql.ErrCodeInvalid, "Undefined column name nosuch"},
		{"SELECT * FROM errs WHERE v = 'x'", gocql.ErrCodeInvalid, "ALLOW FILTERING"},
		{"INSERT INTO errs (k) VALUES (1)", gocql.ErrCodeInvalid, "Some clustering keys are missing: c"},
	}
	for _, c := range cases {
		err := shared.Query(c.statement).Exec()
		var request gocql.RequestError
		if !errors.As(err, &request) || request.Code() != c.code || !strings.Contains(request.Message(), c.words) {
			t.Errorf("%s: %v", c.statement, err)
		}
	}
}

func TestWarnings(t *testing.T) {
	run(t, shared, "CREATE TABLE warned (k int PRIMARY KEY)")
	iterator := shared.Query("SELECT max(k) FROM warned").Iter()
	warnings := iterator.Warnings()
	must(t, iterator.Close())
	if len(warnings) == 0 || !strings.Contains(warnings[0], "Aggregation query used without partition key") {
		t.Fatal(warnings)
	}
}

type observer struct {
	sync.Mutex
	asked map[string]int
}

func (o *observer) ObserveQuery(_ context.Context, query gocql.ObservedQuery) {
	o.Lock()
	defer o.Unlock()
	o.asked[query.Host.HostID()]++
}

func TestTheRingAndTokenAwareRouting(t *testing.T) {
	known := shared.GetHosts()
	if len(known) < len(hosts) {
		t.Fatalf("%d hosts known", len(known))
	}
	for _, host := range known {
		if len(host.Tokens()) == 0 || host.DataCenter() == "" || host.Rack() == "" || host.HostID() == "" || !host.IsUp() {
			t.Fatal(host)
		}
	}
	run(t, shared, "CREATE TABLE routed (k text PRIMARY KEY, v int)")
	seen := &observer{asked: map[string]int{}}
	session := open(t, func(c *gocql.ClusterConfig) { c.QueryObserver = seen })
	for key := 0; key < 200; key++ {
		run(t, session, "INSERT INTO routed (k, v) VALUES (?, ?)", fmt.Sprintf("é%d", key), key)
	}
	var count int
	must(t, session.Query("SELECT count(*) FROM routed").Scan(&count))
	if count != 200 || len(seen.asked) != len(known) {
		t.Fatalf("%d rows, %d of %d hosts asked", count, len(seen.asked), len(known))
	}
}

type statusListener struct {
	sync.Mutex
	down, up map[string]bool
}

func (l *statusListener) OnHostUp(event gocql.HostUpEvent) {
	l.Lock()
	defer l.Unlock()
	l.up[event.Host.ConnectAddress().String()] = true
}

func (l *statusListener) OnHostDown(event gocql.HostDownEvent) {
	l.Lock()
	defer l.Unlock()
	l.down[event.Host.ConnectAddress().String()] = true
}

func (l *statusListener) heard(where map[string]bool, address string) bool {
	l.Lock()
	defer l.Unlock()
	return where[address]
}

func TestANodeThatDiesAndComesBack(t *testing.T) {
	node, kill, start := os.Getenv("TETRAD_TEST_NODE"), os.Getenv("TETRAD_TEST_NODE_KILL"), os.Getenv("TETRAD_TEST_NODE_START")
	if node == "" || kill == "" || start == "" {
		t.Skip("no TETRAD_TEST_NODE, TETRAD_TEST_NODE_KILL and TETRAD_TEST_NODE_START")
	}
	shell := func(command string) {
		t.Helper()
		if out, err := exec.Command("sh", "-c", command).CombinedOutput(); err != nil {
			t.Fatalf("%s: %v\n%s", command, err, out)
		}
	}
	defer shell(start)
	var others []string
	for _, host := range hosts {
		if host != node {
			others = append(others, host)
		}
	}
	listener := &statusListener{down: map[string]bool{}, up: map[string]bool{}}
	session := open(t, func(c *gocql.ClusterConfig) {
		c.Hosts = others
		c.Metadata.HostListener.HostStateChangeListener = listener
		c.RetryPolicy = &gocql.SimpleRetryPolicy{NumRetries: 4}
	})
	run(t, session, "CREATE TABLE through (k int PRIMARY KEY, v int)")
	shell(kill)
	for key := 0; key < 200; key++ {
		must(t, session.Query("INSERT INTO through (k, v) VALUES (?, ?)", key, key).Idempotent(true).Exec())
	}
	eventually(t, time.Minute, "the driver hears that the node is down", func() bool { return listener.heard(listener.down, node) })
	shell(start)
	eventually(t, 90*time.Second, "the driver hears that the node is up", func() bool { return listener.heard(listener.up, node) })
	var count int
	must(t, session.Query("SELECT count(*) FROM through").Scan(&count))
	if count != 200 {
		t.Fatal(count)
	}
}
