// SPDX-License-Identifier: Apache-2.0
// The check itself: right histories pass, and each with one answer planted in it that is wrong does not.
package main

import (
	"testing"
	"time"
)

// at: an operation from `begun` to `ended`.
func at(begun, ended int64, o Operation) Operation {
	o.Begun, o.Ended = begun, ended
	return o
}

func insert(value int, outcome Outcome, seen int) Operation {
	return Operation{Kind: Insert, Value: value, Outcome: outcome, Seen: Rows{seen}}
}

func compare(expected, value int, outcome Outcome, seen int) Operation {
	return Operation{Kind: Compare, Expected: expected, Value: value, Outcome: outcome, Seen: Rows{seen}}
}

func read(kind Kind, first, second int) Operation {
	return Operation{Kind: kind, Outcome: Read, Seen: Rows{first, second}}
}

var cases = []struct {
	name        string
	plain, both bool // linearizable without, and with, the rule for unknown outcomes
	history     []Operation
}{
	{"one of two inserts is applied", true, true, []Operation{
		at(1, 4, insert(1, Applied, 0)), at(2, 3, insert(2, Refused, 1)), at(5, 6, read(SerialRead, 1, 0))}},
	{"two inserts are applied", false, false, []Operation{
		at(1, 4, insert(1, Applied, 0)), at(2, 3, insert(2, Applied, 0))}},
	{"an applied insert is lost", false, false, []Operation{
		at(1, 2, insert(1, Applied, 0)), at(3, 4, read(SerialRead, 0, 0))}},
	{"a QUORUM read goes back", false, false, []Operation{
		at(1, 2, insert(1, Applied, 0)), at(3, 4, compare(1, 2, Applied, 0)), at(5, 6, read(QuorumRead, 1, 0))}},
	{"a compare-and-set is refused and names the value that it asks for", false, false, []Operation{
		at(1, 2, insert(1, Applied, 0)), at(3, 4, compare(1, 2, Refused, 1))}},
	{"a refusal names a value that never was", false, false, []Operation{
		at(1, 2, insert(1, Applied, 0)), at(3, 4, insert(2, Refused, 3))}},
	{"an addition is applied twice", false, false, []Operation{
		at(1, 2, insert(1, Applied, 0)), at(3, 4, Operation{Kind: Add, Outcome: Applied}), at(5, 6, read(SerialRead, 3, 0))}},
	{"an unknown addition is applied once or never", true, true, []Operation{
		at(1, 2, insert(1, Applied, 0)), at(3, 4, Operation{Kind: Add, Outcome: Unknown}), at(5, 6, read(SerialRead, 2, 0))}},
	{"an unknown addition is applied twice", false, false, []Operation{
		at(1, 2, insert(1, Applied, 0)), at(3, 4, Operation{Kind: Add, Outcome: Unknown}), at(5, 6, read(SerialRead, 3, 0))}},
	{"half of a batch is applied", false, false, []Operation{
		at(1, 2, insert(1, Applied, 0)), at(3, 4, Operation{Kind: Batch, Expected: 1, Value: 2, Outcome: Applied}),
		at(5, 6, read(SerialRead, 2, 0))}},
	{"a deleted row comes back", false, false, []Operation{
		at(1, 2, insert(1, Applied, 0)), at(3, 4, Operation{Kind: Delete, Outcome: Applied}), at(5, 6, read(QuorumRead, 0, 0)),
		at(7, 8, read(QuorumRead, 1, 0))}},
	{"what was not applied is seen", false, false, []Operation{
		at(1, 2, insert(1, Nothing, 0)), at(3, 4, read(SerialRead, 1, 0))}},
	// A SERIAL read that leaves an open proposal open: legal for who waits for ever, not for us.
	{"an unknown insert shows after a SERIAL read without it", true, false, []Operation{
		at(1, 2, insert(1, Unknown, 0)), at(3, 4, read(SerialRead, 0, 0)), at(5, 6, read(SerialRead, 1, 0))}},
	{"an unknown insert shows after a refusal without it", true, false, []Operation{
		at(1, 2, insert(1, Unknown, 0)), at(3, 4, compare(7, 8, Refused, 0)), at(5, 6, read(SerialRead, 1, 0))}},
	{"an unknown insert shows after a QUORUM read without it", true, true, []Operation{
		at(1, 2, insert(1, Unknown, 0)), at(3, 4, read(QuorumRead, 0, 0)), at(5, 6, read(SerialRead, 1, 0))}},
	{"an unknown insert that no server answered shows after a SERIAL read without it", true, true, []Operation{
		at(1, Never, insert(1, Unknown, 0)), at(3, 4, read(SerialRead, 0, 0)), at(5, 6, read(SerialRead, 1, 0))}},
	{"what is applied late is missing after a SERIAL read", true, false, []Operation{
		at(1, 2, insert(1, Late, 0)), at(3, 4, read(SerialRead, 0, 0))}},
}

func TestPlantedAnswers(t *testing.T) {
	for _, c := range cases {
		if wrong := Linearizable(c.history, false, time.Minute); (wrong == "") != c.plain {
			t.Errorf("%s: %q without the rule for unknown outcomes", c.name, wrong)
		}
		if wrong := Check(c.history, time.Minute); (wrong == "") != c.both {
			t.Errorf("%s: %q", c.name, wrong)
		}
	}
}

// A right history of 200 operations, and the same with each single answer changed to one that is wrong there.
func TestEachAnswerCounts(t *testing.T) {
	var history []Operation
	place, rows := int64(0), Rows{}
	for i := 1; i <= 200; i++ {
		o := compare(rows[0], i, Applied, 0)
		if i%2 == 0 {
			o = read(SerialRead, rows[0], rows[1])
		}
		if o.Kind == Compare && rows[0] == 0 {
			o = insert(i, Applied, 0)
		}
		rows = o.apply(rows)
		history = append(history, at(place+1, place+2, o))
		place += 2
	}
	if wrong := Check(history, time.Minute); wrong != "" {
		t.Fatal(wrong)
	}
	for i, o := range history {
		if o.Kind == SerialRead {
			o.Seen[0]--
		} else {
			o.Outcome, o.Seen = Refused, Rows{-1}
		}
		planted := append([]Operation(nil), history...)
		planted[i] = o
		if Check(planted, time.Minute) == "" {
			t.Errorf("planted in operation %d and not found: %v", i, o)
		}
	}
}
