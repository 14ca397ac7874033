package pgledger_test

import (
	"fmt"
	"math/rand/v2"
	"sync"
	"sync/atomic"
	"testing"

	"noisegate.example/budget"
	"noisegate.example/budget/pgledger"
	"noisegate.example/internal/fault"
	"noisegate.example/internal/pgtest"
	"noisegate.example/mechanisms"
)

// Batches that go behind each other, each on the assumption that the one before it is committed. There are so many
// clients of one gateway that batches overlap. Whatever happens to a batch, nobody is left without an answer, and everybody has what was
// reported to them, once.

// overlap lets clients spend, each so often, on an account that has just enough, and calls charged with each charge.
func overlap(t *testing.T, dsn string, clients, each int, charged func(l budget.Ledger, c budget.Charge, own budget.Account)) {
	t.Helper()
	l, err := pgledger.Open(t.Context(), dsn)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(l.Close)
	all := mechanisms.Loss{Epsilon: mechanisms.PicoEpsilon(clients * each)}
	own := account(budget.AnalystScope, "ana", all.Epsilon)
	reserve(t, l, charge("first", mechanisms.Loss{}, own))
	var running sync.WaitGroup
	for i := range clients {
		running.Go(func() {
			for n := range each {
				c := charge(fmt.Sprint(i, "-", n), mechanisms.Loss{Epsilon: 1}, own)
				if got, err := l.Reserve(t.Context(), c); err != nil || got.Reserved == nil {
					t.Errorf("%+v, %v", got, err)
				}
				if err := l.Settle(t.Context(), c.ID, c.Loss, []byte(c.ID)); err != nil {
					t.Error(err)
				}
				charged(l, c, own)
			}
		})
	}
	running.Wait()
	b, err := l.Balances(t.Context(), []budget.AccountID{own.ID})
	if err != nil || b[0].Spent != all || b[0].Reserved != (mechanisms.Loss{}) {
		t.Errorf("%+v, %v", b, err)
	}
	if err := l.VerifyAll(t.Context()); err != nil {
		t.Error(err)
	}
}

// Now and then one cannot be written from memory, and takes the one behind it along. There is one connection: nobody
// holds it and waits for another.
func testOverlap(t *testing.T, d *pgtest.ControlDatabase) {
	overlap(t, d.LedgerDSN+"&pool_max_conns=1", 32, 60, func(l budget.Ledger, c budget.Charge, own budget.Account) {
		switch rand.IntN(20) {
		case 0:
			again := c
			again.ID += "again"
			if got, err := l.Reserve(t.Context(), again); err != nil || got.Replay == nil || string(got.Replay.Answer) != string(c.ID) {
				t.Errorf("%+v, %v", got, err)
			}
		case 1:
			dear := charge(string(c.ID)+"dear", mechanisms.Loss{Epsilon: own.Limit.Epsilon + 1}, own)
			if got, err := l.Reserve(t.Context(), dear); fault.CodeOf(err) != fault.CodeBudgetExhausted {
				t.Errorf("%+v, %v", got, err)
			}
		}
	})
}

// Answers are lost while batches are on their way, at most two at once. What became of each is found out.
func testOverlapAnswersLost(t *testing.T, d *pgtest.ControlDatabase) {
	const clients, each, losses = 32, 100, 12
	wire := newWire(t, d.LedgerDSN)
	var done atomic.Int64
	overlap(t, wire.dsn, clients, each, func(budget.Ledger, budget.Charge, budget.Account) {
		// Often enough, and seldom enough for batches to overlap again; and never so late that it is the answer to what is asked at the end.
		if n := done.Add(1); n%(clients*each/losses) == 0 && n < clients*each*9/10 {
			wire.loseNextAnswer()
		}
	})
	if lost := wire.lost.Load(); lost < losses/2 {
		t.Errorf("only %d answers were lost", lost)
	}
}

// Commits are refused, when all statements of a batch and of the one behind it were sent: that one is not committed either.
func testOverlapCommitsRefused(t *testing.T, d *pgtest.ControlDatabase) {
	d.Exec(t, `CREATE SEQUENCE noisegate.refused;
		CREATE FUNCTION noisegate.refuse_commit() RETURNS trigger LANGUAGE plpgsql SECURITY DEFINER AS $$
		BEGIN
			IF NEW.seq % 199 = 0 THEN -- done again it has another number
				PERFORM nextval('noisegate.refused');
				RAISE EXCEPTION 'refused' USING ERRCODE = 'check_violation';
			END IF;
			RETURN NULL;
		END $$;
		CREATE CONSTRAINT TRIGGER refuse_commit AFTER INSERT ON noisegate.entry DEFERRABLE INITIALLY DEFERRED
			FOR EACH ROW EXECUTE FUNCTION noisegate.refuse_commit()`)
	defer d.Exec(t, "DROP FUNCTION noisegate.refuse_commit CASCADE; DROP SEQUENCE noisegate.refused")
	overlap(t, d.LedgerDSN, 32, 60, func(budget.Ledger, budget.Charge, budget.Account) {})
	var refused int
	if err := d.Conn(t, d.DSN).QueryRow(t.Context(), "SELECT last_value FROM noisegate.refused").Scan(&refused); err != nil || refused < 10 {
		t.Errorf("%d commits were refused, %v", refused, err)
	}
}
