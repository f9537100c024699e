// SPDX-License-Identifier: Apache-2.0
// Clients of one history, and what they are answered.
package main

import (
	"errors"
	"fmt"
	"math/rand"
	"sync"
	"sync/atomic"
	"time"

	gocql "github.com/apache/cassandra-gocql-driver/v2"
)

const (
	clientsEach   = 4   // of a partition
	operationsMax = 300 // of a partition: with more the check takes long
	unknownMax    = 9   // each doubles what is to be searched
	finalWait     = time.Minute
)

// connect: a session with one node alone. Statements are sent once.
func connect(node *Node) (*gocql.Session, error) {
	config := gocql.NewCluster(node.address)
	config.ProtoVersion = 5
	config.DisableInitialHostLookup = true
	config.Events.DisableNodeStatusEvents, config.Events.DisableTopologyEvents, config.Events.DisableSchemaEvents = true, true, true
	config.Timeout, config.ConnectTimeout = 12*time.Second, 2*time.Second
	config.ReconnectInterval = 200 * time.Millisecond
	config.RetryPolicy = &gocql.SimpleRetryPolicy{NumRetries: 0}
	config.Consistency, config.SerialConsistency = gocql.Quorum, gocql.Serial
	config.Logger = silent{}
	return config.CreateSession()
}

// silent: the driver would log each connection that ends.
type silent struct{}

func (silent) Error(string, ...gocql.LogField)   {}
func (silent) Warning(string, ...gocql.LogField) {}
func (silent) Info(string, ...gocql.LogField)    {}
func (silent) Debug(string, ...gocql.LogField)   {}

// Partition is the history of one.
type Partition struct {
	key      int
	sessions []*gocql.Session
	places   *int64 // of all histories, rising
	values   *int64
	mutex    sync.Mutex
	history  []Operation
	unknown  int
	wrong    []string // answers that must not be
}

func (p *Partition) next() int64 { return atomic.AddInt64(p.places, 1) }

// work is one client.
func (p *Partition) work(random *rand.Rand, until time.Time) {
	seen := Rows{}
	for time.Now().Before(until) {
		p.mutex.Lock()
		begun, unknown := len(p.history), p.unknown
		p.mutex.Unlock()
		if begun >= operationsMax {
			return
		}
		o := Operation{Kind: SerialRead, Node: random.Intn(nodeCount), Expected: seen[0], Value: 1000 * int(atomic.AddInt64(p.values, 1))}
		if choice := random.Intn(20); choice < 2 {
			o.Kind = QuorumRead
		} else if choice >= 6 && unknown < unknownMax {
			o.Kind = []Kind{Insert, Compare, Compare, Add, Batch, Delete, Compare}[choice%7]
			if seen[0] == 0 || choice == 6 {
				o.Kind = Insert
			}
		}
		if p.execute(&o) && o.Outcome != Unknown {
			seen = o.Seen
			if o.Outcome == Applied {
				seen = o.apply(seen)
			}
		}
		time.Sleep(time.Duration(random.Int63n(int64(60 * time.Millisecond))))
	}
}

// execute sends it and keeps it with its outcome. False: nothing was sent.
func (p *Partition) execute(o *Operation) bool {
	o.Begun = p.next()
	applied, err := p.send(o)
	o.Ended = p.next()
	o.err = err
	if errors.Is(err, gocql.ErrNoConnections) {
		return false
	}
	read := o.Kind == SerialRead || o.Kind == QuorumRead
	switch {
	case err == nil && read:
		o.Outcome = Read
	case err == nil && applied:
		o.Outcome = Applied
	case err == nil:
		o.Outcome = Refused
	case read:
		o.Outcome = Nothing
	default:
		o.Outcome = p.outcomeOf(o, err)
	}
	p.mutex.Lock()
	defer p.mutex.Unlock()
	p.history = append(p.history, *o)
	if o.Outcome == Unknown || o.Outcome == Late {
		p.unknown++
	}
	return true
}

// outcomeOf: what the error of a conditional statement says of it.
func (p *Partition) outcomeOf(o *Operation, err error) Outcome {
	var unknown *gocql.RequestErrCASWriteUnknown
	var timeout *gocql.RequestErrWriteTimeout
	var failure *gocql.RequestErrWriteFailure
	var unavailable *gocql.RequestErrUnavailable
	var other gocql.RequestError
	switch {
	case errors.As(err, &unknown):
		return Unknown
	case errors.As(err, &timeout) && timeout.WriteType == "CAS", errors.As(err, &failure) && failure.WriteType == "CAS",
		errors.As(err, &unavailable):
		return Nothing
	case errors.As(err, &timeout) && timeout.WriteType == "SIMPLE":
		return Late
	case errors.As(err, &other) && (other.Code() == gocql.ErrCodeOverloaded || other.Code() == gocql.ErrCodeBootstrapping):
		return Nothing
	case errors.As(err, &other):
		p.mutex.Lock()
		p.wrong = append(p.wrong, fmt.Sprintf("%v: %v", o, err))
		p.mutex.Unlock()
		return Unknown
	}
	o.Ended = Never // no answer came: its coordinator may be at it still
	return Unknown
}

func (p *Partition) send(o *Operation) (bool, error) {
	session := p.sessions[o.Node]
	seen := map[string]interface{}{}
	applied, err := false, error(nil)
	switch o.Kind {
	case Insert:
		applied, err = session.Query("INSERT INTO history.rows (k, c, v) VALUES (?, 0, ?) IF NOT EXISTS", p.key, o.Value).MapScanCAS(seen)
	case Compare:
		applied, err = session.Query("UPDATE history.rows SET v = ? WHERE k = ? AND c = 0 IF v = ?", o.Value, p.key, o.Expected).MapScanCAS(seen)
	case Add:
		applied, err = session.Query("UPDATE history.rows SET v = v + 1 WHERE k = ? AND c = 0 IF EXISTS", p.key).MapScanCAS(seen)
	case Delete:
		applied, err = session.Query("DELETE FROM history.rows WHERE k = ? AND c = 0 IF EXISTS", p.key).MapScanCAS(seen)
	case Batch:
		batch := session.Batch(gocql.UnloggedBatch)
		batch.Query("UPDATE history.rows SET v = ? WHERE k = ? AND c = 0 IF v = ?", o.Value, p.key, o.Expected)
		batch.Query("INSERT INTO history.rows (k, c, v) VALUES (?, 1, ?)", p.key, o.Value)
		var rest *gocql.Iter
		if applied, rest, err = batch.MapExecCAS(seen); err == nil {
			err = rest.Close()
		}
	default:
		level := gocql.Serial
		if o.Kind == QuorumRead {
			level = gocql.Quorum
		}
		rows := session.Query("SELECT c, v FROM history.rows WHERE k = ?", p.key).Consistency(level).Iter()
		for c, v := 0, 0; rows.Scan(&c, &v); {
			o.Seen[c] = v
		}
		return false, rows.Close()
	}
	if v, is := seen["v"].(int); is && !applied {
		o.Seen[0] = v
	}
	return applied, err
}

// finish reads through each node, when all are well: what is left open is decided.
func (p *Partition) finish() error {
	for node := 0; node < nodeCount; node++ {
		for _, kind := range []Kind{SerialRead, QuorumRead} {
			for deadline := time.Now().Add(finalWait); ; time.Sleep(100 * time.Millisecond) {
				o := Operation{Kind: kind, Node: node}
				if p.execute(&o) && o.Outcome == Read {
					break
				}
				if time.Now().After(deadline) {
					return fmt.Errorf("no %s through node %d in %v: %v", kindNames[kind], node+1, finalWait, o.err)
				}
			}
		}
	}
	return nil
}
