package pgledger_test

import (
	"math"
	"slices"

	"github.com/anishathalye/porcupine"
)

// sequence gives each operation of one account its place, which porcupine then checks. Porcupine could look for an order by itself, and
// does so for few clients; with 64 of them in every batch of a ledger it looks for minutes, because each refusal and each
// read fits in many places.
//
// The changes stand in the journal's order: reply.at says where. The rest goes between them, each operation at the first place
// that fits: as early as possible, so that none takes away a place from one that was asked later. An operation that fits nowhere
// gets none, and the history is illegal.
func sequence(part []porcupine.Operation) {
	var changed, others []porcupine.Operation
	for _, o := range part {
		if changes(o) {
			changed = append(changed, o)
		} else {
			others = append(others, o)
		}
	}
	slices.SortFunc(changed, func(a, b porcupine.Operation) int { return a.Output.(*reply).at - b.Output.(*reply).at })
	slices.SortFunc(others, func(a, b porcupine.Operation) int { return int(a.Call - b.Call) })

	gaps := gapsBetween(changed)
	byReturn := slices.Clone(others)
	slices.SortFunc(byReturn, func(a, b porcupine.Operation) int { return int(a.Return - b.Return) })
	place := map[*reply]int{}
	earliest, returned := 0, 0
	for _, o := range others {
		for ; byReturn[returned].Return < o.Call; returned++ {
			earliest = max(earliest, place[byReturn[returned].Output.(*reply)])
		}
		// Gaps that closed before the call are over for all that come later.
		for gaps[earliest].closes < o.Call {
			earliest++
		}
		place[o.Output.(*reply)] = -1
		for i := earliest; i < len(gaps) && gaps[i].opens <= o.Return; i++ {
			if _, fits := o.Input.(Question).applied(gaps[i].state, *o.Output.(*reply)); fits {
				place[o.Output.(*reply)] = i
				gaps[i].holds = append(gaps[i].holds, o)
				break
			}
		}
	}
	number(changed, gaps, part)
}

// gap is the time between two changes, and how the account is then.
type gap struct {
	opens, closes int64 // the last call of a change before it, the first return of one after it
	state         funds
	holds         []porcupine.Operation // in the order of their calls
}

func gapsBetween(changed []porcupine.Operation) []gap {
	gaps := make([]gap, len(changed)+1)
	gaps[0].state.limit = firstLimit
	for i, o := range changed {
		gaps[i+1].opens = max(gaps[i].opens, o.Call)
		gaps[i+1].state, _ = o.Input.(Question).applied(gaps[i].state, *o.Output.(*reply))
	}
	closes := int64(math.MaxInt64)
	for i := len(changed); i >= 0; i-- {
		gaps[i].closes = closes
		if i > 0 {
			closes = min(closes, changed[i-1].Return)
		}
	}
	return gaps
}

// number writes down the places.
func number(changed []porcupine.Operation, gaps []gap, all []porcupine.Operation) {
	for _, o := range all {
		o.Output.(*reply).at = 0
	}
	n := 0
	for i, g := range gaps {
		for _, o := range g.holds {
			n++
			o.Output.(*reply).at = n
		}
		if i < len(changed) {
			n++
			changed[i].Output.(*reply).at = n
		}
	}
}
