package pgledger

import (
	"fmt"
	"testing"

	"noisegate.example/budget"
)

// What others are charged takes nothing from an analyst, until so many were charged since that there is no room; of each analyst the newest
// are remembered.
func TestSettlementsAreByAnalyst(t *testing.T) {
	var s settlements
	put := func(analyst string, n int) budget.ReservationID {
		id := budget.ReservationID(fmt.Sprint(analyst, " ", n))
		s.put(id, budget.Settlement{Charged: &budget.Charged{Analyst: analyst}})
		return id
	}
	known := func(id budget.ReservationID) bool { _, ok := s.of(id); return ok }
	anas := put("ana", 0)
	oldest, newest := put("bob", 0), budget.ReservationID("")
	for n := range 10 * rememberedSettlements {
		newest = put("bob", n+1)
	}
	if !known(anas) || known(oldest) || !known(newest) || len(s.known) != 1+rememberedSettlements {
		t.Errorf("ana's %t, bob's oldest %t, newest %t, %d in all", known(anas), known(oldest), known(newest), len(s.known))
	}
	for n := range rememberedAnalysts - 1 { // which with bob are as many as there is room for
		put(fmt.Sprint("analyst ", n), 0)
	}
	if known(anas) || !known(newest) || len(s.by) != rememberedAnalysts {
		t.Errorf("who was charged longest ago is remembered: %t; bob: %t; %d analysts", known(anas), known(newest), len(s.by))
	}
}
