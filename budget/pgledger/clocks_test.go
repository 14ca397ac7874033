package pgledger_test

import (
	"context"
	"errors"
	"math/rand/v2"
	"path/filepath"
	"testing"
	"time"

	"noisegate.example/budget"
	"noisegate.example/budget/budgettest"
	"noisegate.example/budget/pgledger"
	"noisegate.example/internal/fault"
	"noisegate.example/internal/pgtest"
	"noisegate.example/mechanisms"
)

// turns alternates changes between the ledgers of two gateways. No ledger decides from its cache, as the clocks of the test step.
type turns struct {
	*pgledger.Ledger
	other *pgledger.Ledger
}

func (l *turns) next() *pgledger.Ledger {
	l.Ledger, l.other = l.other, l.Ledger
	l.Uncache()
	return l.Ledger
}

func (l *turns) Reserve(ctx context.Context, c budget.Charge) (budget.Outcome, error) {
	return l.next().Reserve(ctx, c)
}

func (l *turns) Settle(ctx context.Context, id budget.ReservationID, loss mechanisms.Loss, answer []byte) error {
	return l.next().Settle(ctx, id, loss, answer)
}

func (l *turns) SetBack(ctx context.Context, by string, c budget.SetBack) error {
	return l.next().SetBack(ctx, by, c)
}

// As in memory, for two gateways whose machines have one clock. The functions of the server's clock give way to one that a test sets.
func testClocksThatStep(t *testing.T, d *pgtest.ControlDatabase) {
	d.Exec(t, `CREATE TABLE public.clock AS SELECT pg_catalog.clock_timestamp() AS at;
		ALTER FUNCTION pg_catalog.clock_timestamp() RENAME TO clock_unturned;
		CREATE FUNCTION pg_catalog.clock_timestamp() RETURNS timestamptz LANGUAGE sql VOLATILE SECURITY DEFINER SET search_path = '' AS
			'SELECT at FROM public.clock'`)
	super := d.Conn(t, d.DSN)
	var own time.Time
	set := func(server, here time.Time) {
		own = here
		if _, err := super.Exec(t.Context(), "UPDATE public.clock SET at = $1", server); err != nil {
			t.Fatal(err)
		}
	}
	both := func() *turns {
		empty(t, d)
		l := &turns{open(t, d), open(t, d)}
		for _, one := range []*pgledger.Ledger{l.Ledger, l.other} {
			one.SetClock(func() time.Time { return own })
		}
		return l
	}
	refused, moved, taken, archives, signer := 0, 0, 0, 0, newSigner(t)
	for seed := range uint64(8) {
		l := both()
		r, m, n := budgettest.ClocksThatStep(t, seed, rand.New(rand.NewPCG(seed, 8)), 40, budgettest.Stepped{Ledger: l, Set: set})
		refused, moved, taken = refused+r, moved+m, taken+n
		for _, one := range []*pgledger.Ledger{l.Ledger, l.other} {
			if err := one.VerifyAll(t.Context()); err != nil {
				t.Errorf("seed %d: %v", seed, err)
			}
		}
		path := filepath.Join(t.TempDir(), "archive")
		made, err := pgledger.Archive(t.Context(), pgledger.ArchiveOrder{OwnerDSN: d.OwnerDSN, Dataset: "census", Before: own.Add(1),
			By: "op", Path: path, Signer: signer})
		switch {
		case errors.Is(err, pgledger.ErrNothingToArchive):
			continue
		case err != nil:
			t.Errorf("seed %d: %v", seed, err)
			continue
		}
		archives++
		if err := errors.Join(l.VerifyAll(t.Context()), l.other.VerifyAll(t.Context()), verifiesWhole(t, d)); err != nil {
			t.Errorf("seed %d, archived: %v", seed, err)
		}
		auditsWholeOf(t, l.Ledger, "census", signer, path)
		set(made.At, made.At)
		if err := l.SetBack(t.Context(), "sam", budget.SetBack{Dataset: "census", To: made.At, Reason: "a test"}); fault.CodeOf(err) !=
			fault.CodeRequestBody {
			t.Errorf("seed %d: the time is set to one that is in an archive: %v", seed, err)
		}
	}
	budgettest.SettingBack(t, budgettest.Stepped{Ledger: both(), Set: set})
	if t.Logf("%d are refused, %d times set back, %d taken, %d archives", refused, moved, taken, archives); refused < 10 || moved < 10 ||
		taken < 100 || archives == 0 {
		t.Error("the test tests nothing")
	}
}
