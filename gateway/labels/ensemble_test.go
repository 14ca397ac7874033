package labels

import (
	"context"
	"testing"
	"time"

	"noisegate.example/budget/budgettest"
	"noisegate.example/gateway"
	"noisegate.example/gateway/auth"
	"noisegate.example/mechanisms"
	"noisegate.example/pate"
)

// TestEnsemblesAreLists: an analyst all of whose places among the lists are taken waits for a look at an ensemble as for
// any other list. The store, which would panic here, is not asked.
//
// covers: L9
func TestEnsemblesAreLists(t *testing.T) {
	ledger := budgettest.NewMemory(time.Now)
	parts := gateway.Config{
		Ledger: ledger, InForce: ledger, Policies: struct{ gateway.Policies }{}, Calculator: struct{ gateway.Calculator }{},
		Sampler: func() *mechanisms.Sampler { return nil }, NewID: gateway.NewULID, Clock: gateway.SystemClock{}, Abandoned: time.Minute,
		Fairness: gateway.Fairness{PerAnalyst: 1},
	}
	g, err := gateway.New(parts)
	if err != nil {
		t.Fatal(err)
	}
	s, err := New(Config{Gateway: g, Ledger: parts.Ledger, Ensembles: new(pate.Store)})
	if err != nil {
		t.Fatal(err)
	}
	mel := auth.Principal{Subject: "mel"}
	release, err := g.EnterList(t.Context(), mel)
	if err != nil {
		t.Fatal(err)
	}
	defer release()
	ctx, cancel := context.WithTimeout(t.Context(), 20*time.Millisecond)
	defer cancel()
	if _, err := s.Ensemble(ctx, mel, "digits"); err == nil {
		t.Error("answered without a place")
	}
}
