// SPDX-License-Identifier: Apache-2.0
// What goes wrong while a history is made.
package main

import (
	"math/rand"
	"syscall"
	"time"
)

type Fault struct {
	name string
	make func(c *Cluster, random *rand.Rand) error // one fault, from its beginning to its end
}

var faults = []Fault{
	{"kill", kill},
	{"pause", pause},
	{"partition", partition},
	{"partition in one direction", partitionOneWay},
	{"all of them", func(c *Cluster, random *rand.Rand) error {
		one := []func(*Cluster, *rand.Rand) error{kill, pause, partition, partitionOneWay, killInPartition}
		return one[random.Intn(len(one))](c, random)
	}},
}

type Cluster struct {
	nodes []*Node
	links *Links
}

func between(random *rand.Rand, least, most time.Duration) time.Duration {
	return least + time.Duration(random.Int63n(int64(most-least)))
}

func kill(c *Cluster, random *rand.Rand) error {
	node := c.nodes[random.Intn(nodeCount)]
	node.kill()
	time.Sleep(between(random, 100*time.Millisecond, time.Second))
	return node.restart()
}

// Of two that stand still there is no quorum.
func pause(c *Cluster, random *rand.Rand) error {
	chosen := random.Perm(nodeCount)[:1+random.Intn(2)]
	for _, i := range chosen {
		c.nodes[i].signal(syscall.SIGSTOP)
	}
	time.Sleep(between(random, 100*time.Millisecond, 1500*time.Millisecond))
	for _, i := range chosen {
		c.nodes[i].signal(syscall.SIGCONT)
	}
	return nil
}

// divide: the first of an order of the nodes from the others.
func divide(c *Cluster, random *rand.Rand) {
	order, first := random.Perm(nodeCount), 1+random.Intn(2)
	for _, i := range order[:first] {
		for _, j := range order[first:] {
			c.links.hold(i, j)
			c.links.hold(j, i)
		}
	}
}

func partition(c *Cluster, random *rand.Rand) error {
	divide(c, random)
	time.Sleep(between(random, 200*time.Millisecond, 2*time.Second))
	c.links.heal(random.Intn(2) == 0)
	return nil
}

// Some hear and are not heard.
func partitionOneWay(c *Cluster, random *rand.Rand) error {
	for pairs := 1 + random.Intn(4); pairs > 0; pairs-- {
		order := random.Perm(nodeCount)
		c.links.hold(order[0], order[1])
	}
	time.Sleep(between(random, 200*time.Millisecond, 2*time.Second))
	c.links.heal(random.Intn(2) == 0)
	return nil
}

// What a node had sent comes when it has ended.
func killInPartition(c *Cluster, random *rand.Rand) error {
	divide(c, random)
	time.Sleep(between(random, 100*time.Millisecond, 500*time.Millisecond))
	node := c.nodes[random.Intn(nodeCount)]
	node.kill()
	time.Sleep(between(random, 100*time.Millisecond, time.Second))
	c.links.heal(false)
	return node.restart()
}

// run makes faults until the time is over, and then sees that all nodes are ready again.
func (f Fault) run(c *Cluster, random *rand.Rand, until time.Time) error {
	for time.Now().Before(until) {
		time.Sleep(between(random, 50*time.Millisecond, 400*time.Millisecond))
		if err := f.make(c, random); err != nil {
			return err
		}
	}
	for _, node := range c.nodes {
		if err := node.waitUntilReady(); err != nil {
			return err
		}
	}
	return nil
}
