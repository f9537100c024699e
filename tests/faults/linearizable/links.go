// SPDX-License-Identifier: Apache-2.0
// What nodes send each other passes through here, so that it can be held back: from one node to another, in one direction
// or both. What is held comes late, or never: then its connections end.
package main

import (
	"bufio"
	"fmt"
	"io"
	"net"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"time"
)

type Links struct {
	nodes     []*Node
	listeners []net.Listener
	mutex     sync.Mutex
	changed   *sync.Cond
	cut       [nodeCount][nodeCount]bool // what the first sends the second is held
	pipes     map[*pipe]bool
}

// A connection that `from` has made to `to`.
type pipe struct {
	from, to        int
	inside, outside net.Conn
	ended           bool
}

func newLinks(nodes []*Node) (*Links, error) {
	l := &Links{nodes: nodes, pipes: map[*pipe]bool{}}
	l.changed = sync.NewCond(&l.mutex)
	for i, n := range nodes {
		listener, err := net.Listen("tcp", net.JoinHostPort(n.linked, internode))
		if err != nil {
			return nil, err
		}
		l.listeners = append(l.listeners, listener)
		go l.accept(i, listener)
	}
	return l, nil
}

func (l *Links) accept(to int, listener net.Listener) {
	for {
		inside, err := listener.Accept()
		if err != nil {
			return
		}
		go l.connect(inside, to)
	}
}

func (l *Links) connect(inside net.Conn, to int) {
	from, found := l.whoHas(inside.RemoteAddr().String())
	outside, err := net.DialTimeout("tcp", net.JoinHostPort(l.nodes[to].address, internode), time.Second)
	if err != nil || !found {
		inside.Close()
		if err == nil {
			outside.Close()
		}
		return
	}
	p := &pipe{from: from, to: to, inside: inside, outside: outside}
	l.mutex.Lock()
	l.pipes[p] = true
	l.mutex.Unlock()
	go l.pump(p, inside, outside, from, to)
	l.pump(p, outside, inside, to, from)
}

func (l *Links) pump(p *pipe, source, target net.Conn, from, to int) {
	defer l.end(p)
	buffer := make([]byte, 64<<10)
	for {
		size, err := source.Read(buffer)
		if size > 0 {
			l.mutex.Lock()
			for l.cut[from][to] && !p.ended {
				l.changed.Wait()
			}
			ended := p.ended
			l.mutex.Unlock()
			if ended {
				return
			}
			if _, failed := target.Write(buffer[:size]); failed != nil {
				return
			}
		}
		if err != nil {
			return
		}
	}
}

func (l *Links) end(p *pipe) {
	l.mutex.Lock()
	p.ended = true
	delete(l.pipes, p)
	l.changed.Broadcast()
	l.mutex.Unlock()
	p.inside.Close()
	p.outside.Close()
}

func (l *Links) hold(from, to int) {
	l.mutex.Lock()
	l.cut[from][to] = true
	l.mutex.Unlock()
}

// heal lets everything pass. `lost`: what was held is not delivered.
func (l *Links) heal(lost bool) {
	l.mutex.Lock()
	var ended []*pipe
	for p := range l.pipes {
		if lost && (l.cut[p.from][p.to] || l.cut[p.to][p.from]) {
			p.ended = true
			ended = append(ended, p)
		}
	}
	l.cut = [nodeCount][nodeCount]bool{}
	l.changed.Broadcast()
	l.mutex.Unlock()
	for _, p := range ended {
		l.end(p)
	}
}

func (l *Links) close() {
	for _, listener := range l.listeners {
		listener.Close()
	}
	l.heal(false)
}

// whoHas: the node whose process has the socket of a connection, by its own end.
func (l *Links) whoHas(address string) (int, bool) {
	socket, err := socketOf(address)
	if err != nil {
		return 0, false
	}
	for i, n := range l.nodes {
		files, _ := filepath.Glob(fmt.Sprintf("/proc/%d/fd/*", n.pid.Load()))
		for _, file := range files {
			if target, err := os.Readlink(file); err == nil && target == socket {
				return i, true
			}
		}
	}
	return 0, false
}

// socketOf: what /proc/PID/fd calls the socket that is bound to the address.
func socketOf(address string) (string, error) {
	host, port, err := net.SplitHostPort(address)
	if err != nil {
		return "", err
	}
	ip := net.ParseIP(host).To4()
	var number int
	fmt.Sscan(port, &number)
	wanted := fmt.Sprintf("%02X%02X%02X%02X:%04X", ip[3], ip[2], ip[1], ip[0], number)
	table, err := os.Open("/proc/net/tcp")
	if err != nil {
		return "", err
	}
	defer table.Close()
	for lines := bufio.NewScanner(table); lines.Scan(); {
		if fields := strings.Fields(lines.Text()); len(fields) > 9 && fields[1] == wanted {
			return "socket:[" + fields[9] + "]", nil
		}
	}
	return "", io.EOF
}
