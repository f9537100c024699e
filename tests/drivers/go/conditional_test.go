// SPDX-License-Identifier: Apache-2.0
// gocql's calls for conditional statements: ScanCAS, MapScanCAS, and both of a batch.
package drivers

import (
	"testing"

	gocql "github.com/apache/cassandra-gocql-driver/v2"
)

func TestConditionalStatements(t *testing.T) {
	run(t, shared, "CREATE TABLE leases (name text PRIMARY KEY, owner text, version int)")
	for version := 3; version <= 5; version++ {
		session := open(t, func(c *gocql.ClusterConfig) { c.ProtoVersion = version })
		run(t, session, "DELETE FROM leases WHERE name = 'a' IF EXISTS")
		insert := "INSERT INTO leases (name, owner, version) VALUES ('a', ?, 1) IF NOT EXISTS"
		var name, owner string
		var number int
		applied, err := session.Query(insert, "one").SerialConsistency(gocql.LocalSerial).ScanCAS(&name, &owner, &number)
		must(t, err)
		if !applied {
			t.Fatal("not applied, though there was nothing")
		}
		applied, err = session.Query(insert, "two").ScanCAS(&name, &owner, &number)
		must(t, err)
		if applied || name != "a" || owner != "one" || number != 1 {
			t.Fatal(applied, name, owner, number)
		}
		update := "UPDATE leases SET owner = ?, version = ? WHERE name = 'a' IF version = ?"
		current := map[string]interface{}{}
		applied, err = session.Query(update, "two", 2, 7).MapScanCAS(current)
		must(t, err)
		if applied || len(current) != 1 || current["version"] != 1 {
			t.Fatal(applied, current)
		}
		applied, err = session.Query(update, "two", 2, 1).MapScanCAS(map[string]interface{}{})
		must(t, err)
		if !applied {
			t.Fatal("not applied, though the version fits")
		}
	}
}

func TestConditionalBatches(t *testing.T) {
	run(t, shared, "CREATE TABLE steps (k int, c int, v int, PRIMARY KEY (k, c))")
	run(t, shared, "INSERT INTO steps (k, c, v) VALUES (1, 1, 1)")
	batch := func(old int) *gocql.Batch {
		made := shared.Batch(gocql.UnloggedBatch)
		made.Query("UPDATE steps SET v = ? WHERE k = 1 AND c = 1 IF v = ?", old+1, old)
		made.Query("INSERT INTO steps (k, c, v) VALUES (1, 2, ?)", old)
		return made
	}
	var k, c, v int
	applied, iterator, err := batch(5).ExecCAS(&k, &c, &v)
	must(t, err)
	must(t, iterator.Close())
	if applied || k != 1 || c != 1 || v != 1 {
		t.Fatal(applied, k, c, v)
	}
	current := map[string]interface{}{}
	applied, iterator, err = batch(1).MapExecCAS(current)
	must(t, err)
	must(t, iterator.Close())
	if !applied {
		t.Fatal(current)
	}
	var rows, sum int
	must(t, shared.Query("SELECT count(*), sum(v) FROM steps WHERE k = 1").Scan(&rows, &sum))
	if rows != 2 || sum != 3 {
		t.Fatal(rows, sum)
	}
}
