// SPDX-License-Identifier: Apache-2.0
// User types, tuples, vectors and collections inside one another, JSON; traces, payloads, warnings.
package drivers

import (
	"bytes"
	"encoding/json"
	"fmt"
	"reflect"
	"strings"
	"testing"
	"time"

	gocql "github.com/apache/cassandra-gocql-driver/v2"
)

type street struct {
	Name   string `cql:"name"`
	Number int    `cql:"number"`
}

type address struct {
	Street street              `cql:"street"`
	Zip    string              `cql:"zip"`
	Phones map[string][]string `cql:"phones"`
}

func home(number int) address {
	return address{street{"Main", number}, "10115", map[string][]string{"work": {"1", "2"}}}
}

func userTypes(t *testing.T) {
	run(t, shared, "CREATE TYPE IF NOT EXISTS street (name text, number int)")
	run(t, shared, "CREATE TYPE IF NOT EXISTS address (street frozen<street>, zip text, phones frozen<map<text, frozen<list<text>>>>)")
	run(t, shared, "CREATE TABLE IF NOT EXISTS people (k int PRIMARY KEY, home frozen<address>, free address, every list<frozen<address>>)")
}

func TestUserTypes(t *testing.T) {
	userTypes(t)
	for _, version := range []int{3, 4, 5} {
		session := open(t, func(config *gocql.ClusterConfig) { config.ProtoVersion = version })
		run(t, session, "INSERT INTO people (k, home, free, every) VALUES (?, ?, ?, ?)", version, home(1), home(2), []address{home(3), home(4)})
		var frozen, free address
		var every []address
		must(t, session.Query("SELECT home, free, every FROM people WHERE k = ?", version).Scan(&frozen, &free, &every))
		if !reflect.DeepEqual(frozen, home(1)) || !reflect.DeepEqual(free, home(2)) || !reflect.DeepEqual(every, []address{home(3), home(4)}) {
			t.Fatal(version, frozen, free, every)
		}
		run(t, session, "UPDATE people SET free.zip = ? WHERE k = ?", "2", version)
		run(t, session, "UPDATE people SET free.phones = null WHERE k = ?", version)
		var zip string
		var inner street
		must(t, session.Query("SELECT free.zip, free.street FROM people WHERE k = ?", version).Scan(&zip, &inner))
		if zip != "2" || inner != home(2).Street {
			t.Fatal(version, zip, inner)
		}
	}
	if err := shared.Query("UPDATE people SET home.zip = 'x' WHERE k = 3").Exec(); err == nil {
		t.Fatal("a field of a frozen type changed alone")
	}
	eventually(t, 10*time.Second, "the metadata shows the types", func() bool {
		metadata, err := open(t, nil).KeyspaceMetadata(keyspace)
		must(t, err)
		return metadata.UserTypes["address"] != nil && len(metadata.UserTypes["address"].FieldNames) == 3
	})
}

func TestNestedCollectionsAndTuples(t *testing.T) {
	run(t, shared, "CREATE TABLE deep (k int PRIMARY KEY, v map<text, frozen<list<frozen<map<int, frozen<set<text>>>>>>>, t list<frozen<tuple<int, text>>>)")
	value := map[string][]map[int][]string{"a": {{1: {"x", "y"}}, {2: {"z"}}}, "b": {{3: {"w"}}}}
	run(t, shared, "INSERT INTO deep (k, v) VALUES (1, ?)", value)
	run(t, shared, "UPDATE deep SET t = [(1, 'one'), (2, null)] WHERE k = 1")
	var got map[string][]map[int][]string
	must(t, shared.Query("SELECT v FROM deep WHERE k = 1").Scan(&got))
	if !reflect.DeepEqual(got, value) {
		t.Fatal(got)
	}
	must(t, shared.Query("SELECT v['b'] FROM deep WHERE k = 1").Exec())
}

func TestVectors(t *testing.T) {
	run(t, shared, "CREATE TABLE vectors (k int PRIMARY KEY, v vector<float, 3>, w vector<text, 2>)")
	floats, texts := []float32{0.5, -1, 2.25}, []string{"", "second"}
	run(t, shared, "INSERT INTO vectors (k, v, w) VALUES (1, ?, ?)", floats, texts)
	var gotFloats []float32
	var gotTexts []string
	must(t, shared.Query("SELECT v, w FROM vectors WHERE k = 1").Scan(&gotFloats, &gotTexts))
	if !reflect.DeepEqual(gotFloats, floats) || !reflect.DeepEqual(gotTexts, texts) {
		t.Fatal(gotFloats, gotTexts)
	}
	var near float32
	must(t, shared.Query("SELECT similarity_euclidean(v, ?) FROM vectors WHERE k = 1", floats).Scan(&near))
	if near != 1 {
		t.Fatal(near)
	}
}

func TestJson(t *testing.T) {
	userTypes(t)
	run(t, shared, "INSERT INTO people JSON ?", `{"k": 70, "home": {"street": {"name": "J", "number": 7}, "zip": "z", "phones": {"p": ["1"]}}}`)
	var text string
	must(t, shared.Query("SELECT JSON k, home FROM people WHERE k = 70").Scan(&text))
	var read struct {
		K    int
		Home struct{ Street struct{ Name string } }
	}
	must(t, json.Unmarshal([]byte(text), &read))
	if read.K != 70 || read.Home.Street.Name != "J" {
		t.Fatal(text)
	}
}

func TestTraces(t *testing.T) {
	run(t, shared, "CREATE TABLE traced (k int PRIMARY KEY, v text)")
	for _, version := range []int{3, 4, 5} {
		session := open(t, func(config *gocql.ClusterConfig) { config.ProtoVersion = version })
		var text bytes.Buffer
		for try := 0; try < 5 && strings.Count(text.String(), "\n") < 3; try++ { // this driver looks once, at one replica
			text.Reset()
			query := session.Query("INSERT INTO traced (k, v) VALUES (?, ?)", version, "x").Trace(gocql.NewTraceWriter(session, &text))
			must(t, query.Exec())
		}
		if !strings.Contains(text.String(), "coordinator") || !strings.Contains(text.String(), "prepared statement") || strings.Count(text.String(), "\n") < 3 {
			t.Fatal(version, text.String())
		}
	}
}

func TestPayloadsAndWarnings(t *testing.T) {
	for _, version := range []int{4, 5} {
		session := open(t, func(config *gocql.ClusterConfig) { config.ProtoVersion = version })
		var key string
		query := session.Query("SELECT key FROM system.local").CustomPayload(map[string][]byte{"a": []byte("b"), "empty": {}})
		must(t, query.Scan(&key))
		if key != "local" {
			t.Fatal(key)
		}
		run(t, session, "CREATE TABLE IF NOT EXISTS warned (k int PRIMARY KEY, v text)")
		iterator := session.Query("SELECT max(k) FROM warned").Iter() // this driver drops those of batches
		warnings := fmt.Sprint(iterator.Warnings())
		must(t, iterator.Close())
		if !strings.Contains(warnings, "Aggregation query used without partition key") {
			t.Fatal(version, warnings)
		}
	}
}
