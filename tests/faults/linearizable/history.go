// SPDX-License-Identifier: Apache-2.0
// What clients did to the two rows of one partition, as Porcupine checks it: whether there is an order in which each
// operation takes effect at one moment between its beginning and its end, and answers what the rows are then.
package main

import (
	"fmt"
	"math"
	"sort"
	"time"

	"github.com/anishathalye/porcupine"
)

// Rows of one partition: their values; 0: there is no such row.
type Rows [2]int

// Never: see Operation.Ended.
const Never = math.MaxInt64

type Kind int

const (
	Insert     Kind = iota // row 0 becomes Value, IF NOT EXISTS
	Compare                // row 0 becomes Value, IF it is Expected
	Delete                 // of row 0, IF EXISTS
	Add                    // one to row 0, IF EXISTS
	Batch                  // both rows become Value, IF row 0 is Expected
	SerialRead             // of both rows
	QuorumRead
)

var kindNames = [...]string{"insert", "compare", "delete", "add", "batch", "SERIAL read", "QUORUM read"}

type Outcome int

const (
	Applied Outcome = iota
	Refused         // the condition does not hold: Seen is what was there
	Read            // Seen is what was there
	Late            // applied, as the server says, but not yet on as many replicas as the level asks for
	Unknown         // applied or not
	Nothing         // never applied, as the server says, or a read that failed
)

var outcomeNames = [...]string{"applied", "not applied", "read", "applied late", "unknown", "without effect"}

type Operation struct {
	Kind            Kind
	Expected, Value int
	Outcome         Outcome
	Seen            Rows  // of Refused: row 0 alone
	Begun, Ended    int64 // places in one sequence; Ended is Never where no server answered
	Node            int
	err             error // that it was answered with
}

func (o Operation) String() string {
	return fmt.Sprintf("[%d, %d] node %d: %s expected=%d value=%d: %s, seen %v", o.Begun, o.Ended, o.Node+1, kindNames[o.Kind],
		o.Expected, o.Value, outcomeNames[o.Outcome], o.Seen)
}

func (o Operation) isSerial() bool { return o.Kind != QuorumRead }
func (o Operation) isCertain() bool {
	return o.Outcome == Applied || o.Outcome == Refused || o.Outcome == Read
}

func (o Operation) holds(rows Rows) bool {
	switch o.Kind {
	case Insert:
		return rows[0] == 0
	case Compare, Batch:
		return rows[0] == o.Expected
	case Delete, Add:
		return rows[0] != 0
	}
	return false
}

func (o Operation) apply(rows Rows) Rows {
	switch o.Kind {
	case Insert, Compare:
		rows[0] = o.Value
	case Delete:
		rows[0] = 0
	case Add:
		rows[0]++
	case Batch:
		rows = Rows{o.Value, o.Value}
	}
	return rows
}

// state: what the rows are, and when the latest of the certain SERIAL and conditional operations so far began.
type state struct {
	rows  Rows
	begun int64
}

// after: the operation has happened, if it did, and the rows are `rows` now.
func (s state) after(o Operation, rows Rows) state {
	if o.isSerial() && o.isCertain() && o.Begun > s.begun {
		s.begun = o.Begun
	}
	s.rows = rows
	return s
}

// steps: all that may be after the operation; none: it cannot have happened now. `strict`: see Linearizable.
func steps(s state, o Operation, strict bool) []interface{} {
	settled := strict && s.begun > o.Ended
	switch o.Outcome {
	case Read:
		if s.rows == o.Seen {
			return []interface{}{s.after(o, s.rows)}
		}
	case Refused:
		if !o.holds(s.rows) && s.rows[0] == o.Seen[0] {
			return []interface{}{s.after(o, s.rows)}
		}
	case Applied:
		if o.holds(s.rows) {
			return []interface{}{s.after(o, o.apply(s.rows))}
		}
	case Late:
		if o.holds(s.rows) && !settled {
			return []interface{}{s.after(o, o.apply(s.rows))}
		}
	case Unknown:
		if o.holds(s.rows) && !settled {
			return []interface{}{s, s.after(o, o.apply(s.rows))}
		}
		return []interface{}{s}
	}
	return nil
}

func model(strict bool) porcupine.Model {
	made := porcupine.NondeterministicModel{
		Init: func() []interface{} { return []interface{}{state{}} },
		Step: func(s, o, _ interface{}) []interface{} { return steps(s.(state), o.(Operation), strict) },
	}
	return made.ToModel()
}

// Linearizable checks the history of one partition. What was answered without a certain outcome may happen at any later
// time; `strict`: only before any certain SERIAL or conditional operation that began after that answer. "" or what is wrong.
func Linearizable(history []Operation, strict bool, limit time.Duration) string {
	var operations []porcupine.Operation
	for _, o := range history {
		if o.Outcome == Nothing {
			continue
		}
		end := o.Ended
		if o.Outcome == Unknown || o.Outcome == Late {
			end = Never
		}
		operations = append(operations, porcupine.Operation{Input: o, Call: o.Begun, Return: end})
	}
	switch porcupine.CheckOperationsTimeout(model(strict), operations, limit) {
	case porcupine.Ok:
		return ""
	case porcupine.Unknown:
		return fmt.Sprintf("not decided in %v", limit)
	}
	if strict {
		return "not linearizable when certain operations settle what was unknown before"
	}
	return "not linearizable"
}

// Check is both: without and with `strict`.
func Check(history []Operation, limit time.Duration) string {
	if wrong := Linearizable(history, false, limit); wrong != "" {
		return wrong
	}
	return Linearizable(history, true, limit)
}

func sorted(history []Operation) []Operation {
	out := append([]Operation(nil), history...)
	sort.Slice(out, func(i, j int) bool { return out[i].Begun < out[j].Begun })
	return out
}
