// SPDX-License-Identifier: Apache-2.0
// Four nodes, each a process. They reach each other at addresses of their own on which the links listen, clients at those of
// the nodes.
package main

import (
	"fmt"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync/atomic"
	"syscall"
	"time"
)

const (
	nodeCount    = 4
	internode    = "7000"
	linksAbove   = 100 // the address of a node's links is so much above that of the node
	startSeconds = 30
)

type Node struct {
	number          int
	address, linked string
	arguments       []string
	folder          string
	process         *exec.Cmd
	pid             atomic.Int64 // of the process that runs; 0: none
}

// addressAfter: `first` with a later last byte.
func addressAfter(first string, by int) string {
	ip := net.ParseIP(first).To4()
	return net.IPv4(ip[0], ip[1], ip[2], ip[3]+byte(by)).String()
}

func newNodes(binaries, first, folder string) []*Node {
	var nodes []*Node
	var seeds []string
	for i := 0; i < nodeCount; i++ {
		n := &Node{number: i, address: addressAfter(first, i), linked: addressAfter(first, i+linksAbove)}
		n.folder = filepath.Join(folder, fmt.Sprint("node", i+1))
		seeds = append(seeds, n.linked)
		nodes = append(nodes, n)
	}
	for _, n := range nodes {
		n.arguments = []string{filepath.Join(binaries, "tetrad"), "--data-directory", filepath.Join(n.folder, "data"), "--listen-address",
			n.address, "--broadcast-address", n.linked, "--broadcast-rpc-address", n.address, "--seeds", strings.Join(seeds, ","), "--shards", "2"}
	}
	return nodes
}

// start begins its process, which ends with the thread that calls: main's, which holds on to its own.
func (n *Node) start() error {
	if err := os.MkdirAll(n.folder, 0o777); err != nil {
		return err
	}
	log, err := os.OpenFile(filepath.Join(n.folder, "log.txt"), os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o666)
	if err != nil {
		return err
	}
	defer log.Close()
	n.process = exec.Command(n.arguments[0], n.arguments[1:]...)
	n.process.Stdout, n.process.Stderr = log, log
	n.process.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
	if err := n.process.Start(); err != nil {
		return err
	}
	n.pid.Store(int64(n.process.Process.Pid))
	return nil
}

func (n *Node) kill() {
	n.pid.Store(0)
	n.process.Process.Kill()
	n.process.Wait()
}

func (n *Node) signal(s syscall.Signal) { n.process.Process.Signal(s) }

// restart: two are not down at once, since without a quorum nothing happens.
func (n *Node) restart() error {
	if err := n.start(); err != nil {
		return err
	}
	return n.waitUntilReady()
}

// waitUntilReady: it serves, and can serve everything.
func (n *Node) waitUntilReady() error {
	client := http.Client{Timeout: 2 * time.Second, Transport: &http.Transport{DisableKeepAlives: true}}
	for deadline := time.Now().Add(startSeconds * time.Second); time.Now().Before(deadline); time.Sleep(50 * time.Millisecond) {
		answer, err := client.Get("http://" + n.address + ":9180/ready")
		if err != nil {
			continue
		}
		answer.Body.Close()
		if answer.StatusCode == http.StatusOK {
			return nil
		}
	}
	return fmt.Errorf("node %d is not ready after %d s; its log is %s", n.number+1, startSeconds, filepath.Join(n.folder, "log.txt"))
}
