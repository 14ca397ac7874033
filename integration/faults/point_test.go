package faults

import (
	"context"
	"crypto/rand"
	"net/http"
	"sync/atomic"

	"noisegate.example/budget"
	"noisegate.example/gateway"
	"noisegate.example/gateway/gatewaytest"
	"noisegate.example/mechanisms"
	"noisegate.example/sqlrewrite"
)

// point is a place on the way of a query, as security.md names them: before and after it reserves, commits, executes, draws noise,
// stores and sends.
type point string

const (
	beforeReserve point = "before reserve"
	afterReserve  point = "after reserve" // PostgreSQL has the rows and no order to commit
	beforeCommit  point = "before commit" // PostgreSQL is committing
	afterCommit   point = "after commit"  // it has committed, and the gateway has not heard of it
	beforeExecute point = "before execute"
	between       point = "between two statements" // the first has released the value that the second compares with
	afterExecute  point = "after execute"
	beforeNoise   point = "before noise" // noise that depends on no data is drawn before the query runs
	afterNoise    point = "after noise"
	beforeStore   point = "before store"
	afterStore    point = "after store"
	beforeSend    point = "before send"
	afterSend     point = "after send"
)

func points() []point {
	return []point{beforeReserve, afterReserve, beforeCommit, afterCommit, beforeExecute, between, afterExecute, beforeNoise, afterNoise,
		beforeStore, afterStore, beforeSend, afterSend}
}

// inDatabase are the points at which PostgreSQL stands, and not the gateway: see [hold].
func (p point) inDatabase() bool { return p == afterReserve || p == beforeCommit }

// trap springs when a point is visited for the nth time. It stands in the way of a gateway by taking the place of its parts.
type trap struct {
	at     point
	visits atomic.Int64 // that are left
	spring func()

	reserving atomic.Int64 // how many charges are being reserved
}

func newTrap(at point, nth int64, spring func()) *trap {
	t := &trap{at: at, spring: spring}
	t.visits.Store(nth)
	return t
}

func (t *trap) visit(p point) {
	if p == t.at && t.visits.Add(-1) == 0 {
		t.spring()
	}
}

// stand puts the trap around the parts of a gateway.
func (t *trap) stand(c *gateway.Config) {
	c.Ledger = trappedLedger{c.Ledger, t}
	d := c.Datasets[gatewaytest.Dataset]
	d.Data = trappedData{d.Data, t}
	c.Datasets = map[string]gateway.Dataset{gatewaytest.Dataset: d}
	c.Sampler = func() *mechanisms.Sampler { return mechanisms.NewSamplerFrom(trappedRandomness{t}) }
}

type trappedLedger struct {
	budget.Ledger
	*trap
}

func (l trappedLedger) Reserve(ctx context.Context, c budget.Charge) (budget.Outcome, error) {
	l.visit(beforeReserve)
	l.reserving.Add(1)
	defer l.reserving.Add(-1)
	return l.Ledger.Reserve(ctx, c)
}

func (l trappedLedger) Settle(ctx context.Context, id budget.ReservationID, released mechanisms.Loss, answer []byte) error {
	return l.storing(func() error { return l.Ledger.Settle(ctx, id, released, answer) })
}

func (l trappedLedger) SettleApart(ctx context.Context, id budget.ReservationID, released budget.Apart, answer []byte) error {
	return l.storing(func() error { return l.Ledger.SettleApart(ctx, id, released, answer) })
}

func (l trappedLedger) storing(settle func() error) error {
	l.visit(beforeStore)
	err := settle()
	if err == nil {
		l.visit(afterStore)
	}
	return err
}

type trappedData struct {
	gateway.Data
	*trap
}

func (d trappedData) Run(ctx context.Context, s ...sqlrewrite.Statement) sqlrewrite.Rows {
	for i := range s {
		if bought := s[i].Bought; bought != nil {
			s[i].Bought = func() (sqlrewrite.Statement, error) {
				statement, err := bought()
				d.visit(between)
				return statement, err
			}
		}
	}
	d.visit(beforeExecute)
	rows := d.Data.Run(ctx, s...)
	return func(yield func(sqlrewrite.ExactRow, error) bool) {
		rows(yield)
		d.visit(afterExecute)
	}
}

type trappedRandomness struct{ *trap }

func (r trappedRandomness) Read(p []byte) (int, error) {
	r.visit(beforeNoise)
	n, err := rand.Read(p)
	r.visit(afterNoise)
	return n, err
}

// sending puts the trap around answers to queries.
func (t *trap) sending(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path != "/v1/query" {
			next.ServeHTTP(w, r)
			return
		}
		s := &trappedWriter{ResponseWriter: w, trap: t}
		next.ServeHTTP(s, r)
		if s.answering {
			_ = http.NewResponseController(w).Flush() // onto the wire
			t.visit(afterSend)
		}
	})
}

type trappedWriter struct {
	http.ResponseWriter
	*trap
	answering bool
}

func (w *trappedWriter) WriteHeader(code int) {
	if code == http.StatusOK {
		w.answering = true
		w.visit(beforeSend)
	}
	w.ResponseWriter.WriteHeader(code)
}

// Unwrap lets [http.ResponseController] find the connection.
func (w *trappedWriter) Unwrap() http.ResponseWriter { return w.ResponseWriter }
