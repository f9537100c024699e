// SPDX-License-Identifier: Apache-2.0
// Histories of conditional statements, SERIAL and QUORUM reads on four real nodes that are killed, stand still and are cut off
// from each other, checked by Porcupine. Prints a line for each, and as its last line how many passed.
//
// usage: linearizable [-histories N] [-seconds S] [-seed S] -binaries DIR -folder DIR [-first 127.0.7.1]
package main

import (
	"flag"
	"fmt"
	"math/rand"
	"os"
	"runtime"
	"sync"
	"time"

	gocql "github.com/apache/cassandra-gocql-driver/v2"
)

const (
	partitions = 4 // of a history: each is checked by itself
	checkLimit = 60 * time.Second
)

var passed, failed int

func check(name, wrong string) {
	if wrong == "" {
		passed++
		fmt.Println("ok     ", name)
		return
	}
	failed++
	fmt.Println("FAILED ", name+":", wrong)
}

func main() {
	histories := flag.Int("histories", 5, "how many")
	seconds := flag.Int("seconds", 8, "how long faults are made in each")
	seed := flag.Int64("seed", 1, "of what clients do and what goes wrong")
	binaries := flag.String("binaries", "", "where tetrad is")
	folder := flag.String("folder", "", "of the nodes' data")
	first := flag.String("first", "127.0.7.1", "address of the first of four nodes")
	flag.Parse()
	runtime.LockOSThread() // see Node.start
	if err := run(*histories, *seconds, *seed, *binaries, *folder, *first); err != nil {
		check("the run itself", err.Error())
	}
	fmt.Printf("%d passed, %d failed\n", passed, failed)
	if failed != 0 {
		os.Exit(1)
	}
}

func run(histories, seconds int, seed int64, binaries, folder, first string) error {
	nodes := newNodes(binaries, first, folder)
	links, err := newLinks(nodes)
	if err != nil {
		return err
	}
	defer links.close()
	for _, node := range nodes {
		if err := node.start(); err != nil {
			return err
		}
		defer node.kill()
	}
	var sessions []*gocql.Session
	for _, node := range nodes {
		if err := node.waitUntilReady(); err != nil {
			return err
		}
		session, err := connect(node)
		if err != nil {
			return err
		}
		defer session.Close()
		sessions = append(sessions, session)
	}
	for _, statement := range []string{
		"CREATE KEYSPACE history WITH replication = {'class': 'SimpleStrategy', 'replication_factor': 4}",
		"CREATE TABLE history.rows (k int, c int, v int, PRIMARY KEY (k, c)) WITH tetrad_initial_partitions = 8"} {
		if err := sessions[0].Query(statement).Exec(); err != nil {
			return err
		}
	}
	cluster, places, values := &Cluster{nodes, links}, int64(0), int64(0)
	all := map[Outcome]int{}
	for history := 0; history < histories; history++ {
		random := rand.New(rand.NewSource(seed*1_000_003 + int64(history)))
		var made []*Partition
		for i := 0; i < partitions; i++ {
			made = append(made, &Partition{key: history*partitions + i, sessions: sessions, places: &places, values: &values})
		}
		fault := faults[history%len(faults)]
		if err := makeHistory(cluster, fault, made, random, time.Duration(seconds)*time.Second); err != nil {
			return err
		}
		report(history, fault, made, all)
	}
	missing := ""
	for _, outcome := range []Outcome{Applied, Refused, Read} {
		if all[outcome] == 0 {
			missing = "none was " + outcomeNames[outcome]
		}
	}
	check("the histories have operations of each kind", missing)
	return nil
}

func makeHistory(cluster *Cluster, fault Fault, made []*Partition, random *rand.Rand, length time.Duration) error {
	until := time.Now().Add(length)
	var clients sync.WaitGroup
	for _, p := range made {
		for client := 0; client < clientsEach; client++ {
			clients.Add(1)
			go func(p *Partition, seed int64) {
				defer clients.Done()
				p.work(rand.New(rand.NewSource(seed)), until)
			}(p, random.Int63())
		}
	}
	err := fault.run(cluster, random, until)
	clients.Wait()
	for _, p := range made {
		if err == nil {
			err = p.finish()
		}
	}
	return err
}

// report checks a history, and adds its outcomes to `all`.
func report(history int, fault Fault, made []*Partition, all map[Outcome]int) {
	began, counts, operations, wrong := time.Now(), map[Outcome]int{}, 0, ""
	for _, p := range made {
		operations += len(p.history)
		for _, o := range p.history {
			counts[o.Outcome]++
			all[o.Outcome]++
		}
		if len(p.wrong) != 0 {
			wrong = "an answer that says nothing of the outcome: " + p.wrong[0]
		}
		if bad := Check(p.history, checkLimit); bad != "" {
			wrong = fmt.Sprintf("partition %d is %s", p.key, bad)
			for _, o := range sorted(p.history) {
				fmt.Println("      ", o)
			}
		}
	}
	text := ""
	for outcome, name := range outcomeNames {
		text += fmt.Sprintf(", %d %s", counts[Outcome(outcome)], name)
	}
	check(fmt.Sprintf("history %d, %s: %d operations%s; checked in %.1f s", history+1, fault.name, operations, text,
		time.Since(began).Seconds()), wrong)
}
