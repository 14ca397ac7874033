package pgledger

import (
	"bytes"
	"context"
	_ "embed"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"noisegate.example/budget"
	"noisegate.example/budget/internal/machine"
	"noisegate.example/budget/journal"
	"noisegate.example/internal/fault"
)

var (
	//go:embed sql/server.sql
	sqlServer string
	//go:embed sql/heads.sql
	sqlHeads string
	//go:embed sql/beat.sql
	sqlBeat string
	//go:embed sql/gateways.sql
	sqlGateways string
	//go:embed sql/known_gateway.sql
	sqlKnownGateway string
	//go:embed sql/end_runs.sql
	sqlEndRuns string
	//go:embed sql/sign_off.sql
	sqlSignOff string
	//go:embed sql/forget.sql
	sqlForget string
	//go:embed sql/confirm.sql
	sqlConfirm string
	//go:embed sql/lose.sql
	sqlLose string
	//go:embed sql/missing.sql
	sqlMissing string
	//go:embed sql/told.sql
	sqlTold string
	//go:embed sql/further.sql
	sqlFurther string
	//go:embed sql/newest_left.sql
	sqlNewestLeft string
	//go:embed sql/accept.sql
	sqlAccept string
	//go:embed sql/accepted.sql
	sqlAccepted string
)

// site is a server of the control database, as it runs now: one that is started again is another.
type site struct {
	journal.Server
	postmaster time.Time // when it was started
}

// Gateway is a run of a gateway that is known to the ledger.
type Gateway struct {
	Run, Name       string
	Started, Seen   time.Time
	Heads           []budget.Head // the newest entries that it knows
	Found           bool          // it found them on the server that runs now
	server          journal.Server
	postmaster      time.Time
	headsAsTheyWere string
}

// attendance is what this process knows of servers and of other gateways.
type attendance struct {
	run, name string // "": it is no gateway that others wait for
	server    site
	since     time.Time // when it first looked at server
	known     []Gateway
}

// restartPatience is how long gateways are waited for after a server was started again that is on the timeline on which
// they wrote last. It has kept what it committed; what is looked for is a state that somebody put back.
const restartPatience = 5 * time.Second

var (
	errMoved    = errors.New("budget: this is another server of the control database than before")
	errReturned = errors.New("budget: the connection leads back to a server of the control database that this gateway has left for another " +
		"one, or that was older: end that server (if it was restored, and nothing newer is left, remove \"server\" from " +
		"control.anchor), and start the gateway again")
	errOther = errors.New("budget: the anchor is of another server of a control database, which was never this one: set control.anchor " +
		"to this installation's own file; if its database was moved to a new server, remove \"server\" from the file, and start the " +
		"gateway again")
)

// Join makes the process a gateway that others wait for when the server of the control database changes: charges go on
// there once each has found what it knows. It is called once, after [Ledger.VerifyAtStart] and before the first charge.
// The run's name is any text that no other process has; the gateway's stays the same when it is started again.
func (p *Ledger) Join(ctx context.Context, name, run string) error {
	p.attending.Lock()
	p.attendance.name, p.attendance.run = name, run
	p.attending.Unlock()
	if err := p.Attend(ctx); err != nil {
		return err
	}
	s := p.attendance.server
	_, err := p.pool.Exec(ctx, sqlEndRuns, name, run, s.System, s.Timeline)
	if err != nil {
		return fault.DataUnavailable(err)
	}
	return p.Attend(ctx)
}

// SignOff ends what [Ledger.Join] began: nobody waits for this gateway any more. It is called when no charge and no
// answer is under way. It fails if it cannot be made sure that the ledger has all that the gateway knows.
func (p *Ledger) SignOff(ctx context.Context) error {
	if err := p.Attend(ctx); err != nil {
		return err
	}
	if _, err := p.pool.Exec(ctx, sqlSignOff, p.attendance.run); err != nil {
		return fault.DataUnavailable(err)
	}
	return nil
}

// Attend compares the ledger with the newest entries that this process knows, holds datasets where one is missing, takes
// datasets up again that every gateway confirmed, and learns what other gateways wrote. A gateway calls it each second.
func (p *Ledger) Attend(ctx context.Context) error {
	p.attending.Lock()
	defer p.attending.Unlock()
	conn, err := p.pool.Acquire(ctx)
	if err != nil {
		return fault.DataUnavailable(err)
	}
	defer conn.Release()
	if err := p.attend(ctx, conn); err != nil {
		return fault.DataUnavailable(err)
	}
	return nil
}

// attend does all on one connection, which leads to one server.
func (p *Ledger) attend(ctx context.Context, conn *pgxpool.Conn) error {
	if same, err := p.glance(ctx, conn); same || err != nil {
		return err
	}
	a := &p.attendance
	var now site
	var latest time.Time
	if err := conn.QueryRow(ctx, sqlServer).Scan(&now.System, &now.Timeline, &now.postmaster, &latest); err != nil {
		return err
	}
	p.ahead.Store(int64(latest.Sub(p.own())))
	known, moved, err := p.heads.arrive(now)
	if err != nil {
		return err
	}
	if moved {
		p.pool.Reset() // connections to the server before, if it still runs
		a.server, a.since = now, time.Now()
	}
	chains, err := p.compare(ctx, conn, known)
	if err != nil {
		return err
	}
	p.heads.hold(chains)
	if err := p.meet(ctx, conn, moved); err != nil {
		return err
	}
	p.attended.Store(new(time.Now()))
	for _, c := range chains {
		if c.confirmed || c.lost {
			continue
		}
		tag, err := conn.Exec(ctx, sqlConfirm, c.head.Dataset, time.Since(a.since) >= restartPatience, now.System, now.Timeline)
		if err != nil {
			return err
		}
		if tag.RowsAffected() > 0 {
			p.heads.release(c.head.Dataset)
		}
	}
	return nil
}

// glance attends a server on which nothing is to be done, in one exchange and one transaction. It reports false where something is: this
// is another server, a journal lacks what is known of it, or a dataset is held. Then this gateway was seen, if the server is the same, and
// found there what it knew when it came; nothing else was written.
func (p *Ledger) glance(ctx context.Context, conn *pgxpool.Conn) (same bool, err error) {
	a := &p.attendance
	if a.server.postmaster.IsZero() {
		return false, nil
	}
	known := p.knownHeads()
	var now site
	var latest time.Time
	var chains []*chainState
	var others []Gateway
	b := &pgx.Batch{}
	b.Queue(sqlServer).QueryRow(func(row pgx.Row) error { return row.Scan(&now.System, &now.Timeline, &now.postmaster, &latest) })
	names, seqs := asked(known)
	b.Queue(sqlHeads, names, seqs).Query(func(rows pgx.Rows) (err error) {
		chains, err = pgx.CollectRows(rows, scanChain)
		return err
	})
	if a.run != "" {
		p.queueBeat(b, known)
	}
	b.Queue(sqlGateways).Query(func(rows pgx.Rows) (err error) {
		others, err = pgx.CollectRows(rows, scanGateway)
		return err
	})
	if err := conn.SendBatch(ctx, b).Close(); err != nil {
		return false, err
	}
	p.ahead.Store(int64(latest.Sub(p.own())))
	if now.Server != a.server.Server || !now.postmaster.Equal(a.server.postmaster) {
		return false, nil
	}
	for _, c := range chains {
		if !c.confirmed || c.lost || !goesOn(c.head, c.kept, known[c.head.Dataset]) {
			return false, nil
		}
		delete(known, c.head.Dataset)
	}
	for _, seen := range known {
		if seen.Seq > 0 { // its chain is gone
			return false, nil
		}
	}
	for _, c := range chains {
		p.saw(c.head)
	}
	p.heads.hold(chains)
	a.known = others
	p.attended.Store(new(time.Now()))
	return true, nil
}

func (p *Ledger) knownHeads() map[string]budget.Head {
	p.heads.mu.Lock()
	defer p.heads.mu.Unlock()
	return maps.Clone(p.heads.byDataset)
}

// asked are the parameters of sql/heads.sql.
func asked(known map[string]budget.Head) (names []string, seqs []int64) {
	for _, name := range slices.Sorted(maps.Keys(known)) {
		names, seqs = append(names, name), append(seqs, known[name].Seq)
	}
	return names, seqs
}

// chainState is what there is of a dataset's journal on a server.
type chainState struct {
	head            budget.Head
	kept            []byte
	confirmed, lost bool
}

func scanChain(row pgx.CollectableRow) (*chainState, error) {
	c := &chainState{}
	var hash []byte
	err := row.Scan(&c.head.Dataset, &c.head.Seq, &hash, &c.kept, &c.confirmed, &c.lost)
	copy(c.head.Hash[:], hash)
	return c, err
}

// compare looks for the entries that this process knows. Where one is missing nobody writes to the dataset any more.
func (p *Ledger) compare(ctx context.Context, conn *pgxpool.Conn, known map[string]budget.Head) ([]*chainState, error) {
	names, seqs := asked(known)
	rows, err := conn.Query(ctx, sqlHeads, names, seqs)
	if err != nil {
		return nil, err
	}
	chains, err := pgx.CollectRows(rows, scanChain)
	if err != nil {
		return nil, err
	}
	for _, name := range names {
		if known[name].Seq == 0 || slices.ContainsFunc(chains, func(c *chainState) bool { return c.head.Dataset == name }) {
			continue
		}
		if _, err := conn.Exec(ctx, sqlBeginChain, name); err != nil { // what there was of it is lost
			return nil, err
		}
		chains = append(chains, &chainState{head: budget.Head{Dataset: name}})
	}
	for _, c := range chains {
		seen := known[c.head.Dataset]
		if goesOn(c.head, c.kept, seen) {
			p.saw(c.head)
			continue
		}
		var accepted bool
		if err := conn.QueryRow(ctx, sqlAccepted, seen.Dataset, seen.Seq, seen.Hash[:]).Scan(&accepted); err != nil {
			return nil, err
		}
		if accepted {
			p.forgive(seen, c.head)
			continue
		}
		if err := pgx.BeginFunc(ctx, conn, func(tx pgx.Tx) error { // two statements: the second sees what was accepted before it had the lock
			if _, err := tx.Exec(ctx, sqlLock, seen.Dataset, 0); err != nil {
				return err
			}
			_, err := tx.Exec(ctx, sqlLose, seen.Dataset, seen.Seq, seen.Hash[:], p.callsItself())
			return err
		}); err != nil {
			return nil, err
		}
		c.lost = true
	}
	return chains, nil
}

func (p *Ledger) callsItself() string {
	if p.attendance.name == "" {
		return "a process that is no gateway"
	}
	return p.attendance.name
}

// meet says that this gateway is there, and that it found on this server what it knows, or held the dataset; and learns
// who else is. A server that took over may lack gateways that began last.
func (p *Ledger) meet(ctx context.Context, conn *pgxpool.Conn, moved bool) error {
	a := &p.attendance
	if moved {
		for _, g := range a.known {
			_, err := conn.Exec(ctx, sqlKnownGateway, g.Run, g.Name, g.server.System, g.server.Timeline, g.postmaster, g.headsAsTheyWere)
			if err != nil {
				return err
			}
		}
	}
	if a.run != "" {
		b := &pgx.Batch{}
		p.queueBeat(b, p.knownHeads())
		if err := conn.SendBatch(ctx, b).Close(); err != nil {
			return err
		}
	}
	var err error
	a.known, err = gateways(ctx, conn)
	return err
}

// queueBeat says that this gateway is there, if the server is still the one that it attends. Of datasets that are held it says as well
// how far it knows that plans were drawn.
func (p *Ledger) queueBeat(b *pgx.Batch, known map[string]budget.Head) {
	a, records := &p.attendance, recordsOf(slices.Collect(maps.Values(known)))
	for i, r := range records {
		if p.heads.holding(r.Dataset) {
			records[i].Followed, records[i].Drawn = p.known.drawn(r.Dataset)
		}
	}
	text, err := json.Marshal(records)
	if err != nil { // texts and numbers always encode
		panic(err)
	}
	b.Queue(sqlBeat, a.run, a.name, a.server.System, a.server.Timeline, a.server.postmaster, string(text),
		time.Since(a.since) >= restartPatience)
}

// headRecord is a head as the ledger keeps it of a gateway. Of a dataset whose entries are lost it has as well how many slots of
// plans were drawn up to an entry; neither is there where the gateway does not know.
type headRecord struct {
	Dataset  string                       `json:"dataset"`
	Seq      int64                        `json:"seq"`
	Hash     string                       `json:"hash"`
	Followed int64                        `json:"followed,omitempty"`
	Drawn    map[budget.ReservationID]int `json:"drawn,omitempty"`
}

func recordsOf(heads []budget.Head) []headRecord {
	records := make([]headRecord, len(heads))
	for i, h := range heads {
		records[i] = headRecord{Dataset: h.Dataset, Seq: h.Seq, Hash: hex.EncodeToString(h.Hash[:])}
	}
	return records
}

// rowsOf is a connection, or the pool.
type rowsOf interface {
	Query(ctx context.Context, sql string, args ...any) (pgx.Rows, error)
}

func gateways(ctx context.Context, q rowsOf) ([]Gateway, error) {
	rows, err := q.Query(ctx, sqlGateways)
	if err != nil {
		return nil, err
	}
	return pgx.CollectRows(rows, scanGateway)
}

func scanGateway(row pgx.CollectableRow) (g Gateway, err error) {
	err = row.Scan(&g.Run, &g.Name, &g.server.System, &g.server.Timeline, &g.postmaster, &g.headsAsTheyWere, &g.Started, &g.Seen, &g.Found)
	if err != nil {
		return g, err
	}
	var records []headRecord
	if err := json.Unmarshal([]byte(g.headsAsTheyWere), &records); err != nil {
		return g, fmt.Errorf("budget: the heads of gateway %s cannot be read: %w", g.Name, err)
	}
	for _, r := range records {
		h := budget.Head{Dataset: r.Dataset, Seq: r.Seq}
		if n, err := hex.Decode(h.Hash[:], []byte(r.Hash[:min(len(r.Hash), 64)])); err != nil || n != 32 {
			return g, fmt.Errorf("budget: the heads of gateway %s are damaged", g.Name)
		}
		g.Heads = append(g.Heads, h)
	}
	return g, nil
}

// Gateways are the gateways that signed on and not off.
func (p *Ledger) Gateways(ctx context.Context) ([]Gateway, error) {
	all, err := gateways(ctx, p.pool)
	if err != nil {
		return nil, fault.DataUnavailable(err)
	}
	return all, nil
}

// Forget ends the runs of a gateway that will not come back, and says how many there were.
func (p *Ledger) Forget(ctx context.Context, by, name string) (int64, error) {
	tag, err := p.pool.Exec(ctx, sqlForget, name, by)
	if err != nil {
		return 0, fault.DataUnavailable(err)
	}
	return tag.RowsAffected(), nil
}

// Anchored is what an anchor is to remember.
func (p *Ledger) Anchored() journal.Anchored {
	p.heads.mu.Lock()
	defer p.heads.mu.Unlock()
	return journal.Anchored{Server: p.heads.server.Server, Heads: slices.Collect(maps.Values(p.heads.byDataset))}
}

// arrive notes which server answers now, and gives the newest entries that this process knows. From here on no caller learns of a commit of
// another server, so these are all the commits of other servers that callers know.
func (h *heads) arrive(now site) (known map[string]budget.Head, moved bool, err error) {
	h.mu.Lock()
	defer h.mu.Unlock()
	switch before := h.server; {
	case now.postmaster.Equal(before.postmaster):
	case h.left[now.postmaster.UnixMicro()]:
		return nil, false, errReturned
	case before.postmaster.IsZero() && before.System != 0 && before.System != now.System: // as an anchor says
		return nil, false, errOther
	case before.System == now.System && before.Timeline > now.Timeline:
		return nil, false, errReturned
	default:
		if h.left == nil {
			h.left = map[int64]bool{}
		}
		if !before.postmaster.IsZero() {
			h.left[before.postmaster.UnixMicro()] = true
		}
		h.server, moved = now, true
	}
	return maps.Clone(h.byDataset), moved, nil
}

// hold notes which datasets nothing is written to.
func (h *heads) hold(chains []*chainState) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.held = map[string]*journal.BrokenError{}
	for _, c := range chains {
		if held := heldFor(c.head.Dataset, h.byDataset[c.head.Dataset].Seq, c.confirmed, c.lost); held != nil {
			h.held[c.head.Dataset] = held
		}
	}
}

func (h *heads) holding(dataset string) bool {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.held[dataset] != nil
}

func (h *heads) release(dataset string) {
	h.mu.Lock()
	defer h.mu.Unlock()
	delete(h.held, dataset)
}

// heldFor says why nothing is written to a dataset; nil: it is.
func heldFor(dataset string, seq int64, confirmed, lost bool) *journal.BrokenError {
	switch {
	case lost:
		return &journal.BrokenError{Dataset: dataset, Seq: seq, Held: true,
			What: "an entry was there and is not any more: the ledger is older than it was (runbook \"failover\")"}
	case !confirmed:
		return &journal.BrokenError{Dataset: dataset, Held: true, What: "its server was started anew, or took over, and not every gateway has " +
			"found its newest entries there (noisegate audit gateways)"}
	default:
		return nil
	}
}

// goesOn reports whether a journal that ends at head has an entry that was seen before: kept is the hash that it has
// at its number, if it goes on after it.
func goesOn(head budget.Head, kept []byte, seen budget.Head) bool {
	return seen.Seq == 0 || head == seen || head.Seq > seen.Seq && bytes.Equal(kept, seen.Hash[:])
}

// forgive forgets an entry that is lost, once a steward took that for granted, and all that was to happen after it.
func (p *Ledger) forgive(lost, head budget.Head) {
	p.heads.mu.Lock()
	if p.heads.byDataset[lost.Dataset] == lost {
		p.heads.byDataset[lost.Dataset] = head
	}
	delete(p.heads.verified, lost.Dataset) // it may be lost as well: the next look begins at the first entry
	p.heads.mu.Unlock()
	p.known.forget(lost.Dataset)
	p.open.Range(func(id, known any) bool {
		if known.(*openCharge).dataset == lost.Dataset {
			p.open.Delete(id) // it is looked for in the ledger
		}
		return true
	})
}

// here refuses to go on with a transaction on another server than the one that the process attends.
func (p *Ledger) here(s *transaction) error {
	p.heads.mu.Lock()
	defer p.heads.mu.Unlock()
	if !s.postmaster.Equal(p.heads.server.postmaster) {
		return errMoved
	}
	return nil
}

// acknowledge notes the end of a transaction that is about to be told; it must not be if another server committed it
// than the one that this process attends: nobody would look for it there.
func (p *Ledger) acknowledge(s *transaction) error {
	p.heads.mu.Lock()
	defer p.heads.mu.Unlock()
	if !s.postmaster.Equal(p.heads.server.postmaster) {
		return errMoved
	}
	p.heads.note(s.head)
	return nil
}

// attendSoon is Attend, unless somebody did just now: what waits for a dataset that is held must not slow down others.
func (p *Ledger) attendSoon(ctx context.Context) error {
	if p.attendedWithin(attendPause) {
		return nil
	}
	return p.Attend(ctx)
}

// attendPause is between two looks that requests ask for.
const attendPause = 100 * time.Millisecond

// attendedWithin reports whether this process compared the ledger with what it knows not longer ago than that.
func (p *Ledger) attendedWithin(d time.Duration) bool {
	last := p.attended.Load()
	return last != nil && time.Since(*last) < d
}

// Recharge books charges again that the ledger lost, each once, also while the dataset is held, and says how many were
// not there; where a plan paid, that of the plan as well, and its slots are drawn. Who may is for the caller to say, and
// that receipts were signed.
func (p *Ledger) Recharge(ctx context.Context, by string, all []budget.Recharge) (booked int, err error) {
	for _, r := range all {
		if err := r.Check(); err != nil {
			return booked, err
		}
		for _, c := range r.Charges() {
			var fresh bool
			op := &operation{dataset: c.Dataset, accounts: c.Accounts, books: c.ID, decide: func(s *machine.Machine) error {
				fresh = s.Recharge(by, c)
				return nil
			}}
			if c.Plan != nil {
				op.draws = c.Plan.Draw()
			}
			if err := p.override(ctx, &transaction{batch: []*operation{op}}); err != nil {
				return booked, err
			}
			if fresh {
				booked++
			}
		}
	}
	return booked, nil
}

// Booked reports whether the ledger has a charge.
func (p *Ledger) Booked(ctx context.Context, id budget.ReservationID) (bool, error) {
	var dataset string
	err := p.pool.QueryRow(ctx, sqlDatasetOf, id).Scan(&dataset)
	switch {
	case errors.Is(err, pgx.ErrNoRows):
		return false, nil
	case err != nil:
		return false, fault.DataUnavailable(err)
	}
	return true, nil
}

// Resume lets a dataset go on that is held, on the server that runs now, without the entries that are known to be lost,
// and gives these. It reports false for one that is not held. A gateway that misses others holds it again. Plans are drawn
// as far as any gateway knows, or out where one may know more than was told.
func (p *Ledger) Resume(ctx context.Context, by string, r budget.Resume) (budget.Resume, bool, error) {
	held := false
	s := &transaction{}
	s.first = func(ctx context.Context) error {
		held = s.lacks || !s.confirmed
		r.Lost, r.Draws, r.Retires = []budget.Head{}, nil, false
		rows, err := s.conn.Query(ctx, sqlMissing, r.Dataset)
		if err != nil {
			return err
		}
		if r.Lost, err = pgx.CollectRows(rows, func(row pgx.CollectableRow) (budget.Head, error) {
			h := budget.Head{Dataset: r.Dataset}
			var hash []byte
			err := row.Scan(&h.Seq, &hash)
			copy(h.Hash[:], hash)
			return h, err
		}); err != nil || !held {
			return err
		}
		var newest *time.Time
		if err := s.conn.QueryRow(ctx, sqlNewestLeft, r.Dataset).Scan(&newest); err != nil {
			return err
		}
		if newest != nil {
			r.Newest = newest.UTC()
		}
		if err := told(ctx, s.conn, &r); err != nil {
			return err
		}
		plans, slots := make([]string, len(r.Draws)), make([]int, len(r.Draws))
		for i, d := range r.Draws {
			plans[i], slots[i] = string(d.Plan), d.Count
		}
		_, err = s.conn.Exec(ctx, sqlAccept, r.Dataset, by, r.Retires, plans, slots)
		return err
	}
	whole := budget.AccountID{Dataset: r.Dataset, Scope: budget.DatasetScope}
	s.batch = []*operation{{dataset: r.Dataset, accounts: []budget.AccountID{whole}, decide: func(m *machine.Machine) error {
		if held && r.Freeze {
			if err := m.Freeze(by, whole, true); err != nil {
				return err
			}
		}
		if held {
			m.Resume(by, r)
		}
		return nil
	}}}
	err := p.override(ctx, s)
	return r, held, err
}

// told finds out how far gateways know that plans were drawn, and whether they know it of all entries that are lost: each that may
// have written any was on this server, and told; and one had followed all that anybody knew of.
func told(ctx context.Context, q rowsOf, r *budget.Resume) error {
	rows, err := q.Query(ctx, sqlTold, r.Dataset)
	if err != nil {
		return err
	}
	furthest, missed := map[budget.ReservationID]int{}, map[budget.Head]bool{}
	var followed, newest int64
	_, err = pgx.CollectRows(rows, func(row pgx.CollectableRow) (none struct{}, err error) {
		var absent bool
		var seq, upTo *int64
		var hash []byte
		var drawn map[budget.ReservationID]int
		if err := row.Scan(&absent, &seq, &hash, &upTo, &drawn); err != nil {
			return none, err
		}
		if seq != nil {
			h := budget.Head{Dataset: r.Dataset, Seq: *seq}
			copy(h.Hash[:], hash)
			missed[h] = true
		}
		r.Retires = r.Retires || absent || seq != nil && upTo == nil
		if upTo != nil {
			followed = max(followed, *upTo)
		}
		for plan, n := range drawn {
			furthest[plan] = max(furthest[plan], n)
		}
		return none, nil
	})
	for _, h := range r.Lost {
		newest, r.Retires = max(newest, h.Seq), r.Retires || !missed[h]
	}
	r.Retires = r.Retires || newest == 0 || followed < newest
	if err != nil {
		return err
	}
	r.Draws, r.Unpaid = nil, nil
	plans, slots := []string{}, []int{}
	for plan, n := range furthest {
		plans, slots = append(plans, string(plan)), append(slots, n)
	}
	rows, err = q.Query(ctx, sqlFurther, plans, slots)
	if err != nil {
		return err
	}
	_, err = pgx.CollectRows(rows, func(row pgx.CollectableRow) (none struct{}, err error) {
		var d budget.Draw
		var paid bool
		if err := row.Scan(&d.Plan, &d.Count, &paid); err != nil {
			return none, err
		}
		if r.Draws = append(r.Draws, d); !paid {
			r.Unpaid = append(r.Unpaid, d.Plan)
		}
		return none, nil
	})
	return err
}

// override runs a transaction of one operation although the dataset is held.
func (p *Ledger) override(ctx context.Context, of *transaction) error {
	of.overrules = true
	return p.alone(ctx, of)
}

// alone runs a transaction of one operation.
func (p *Ledger) alone(ctx context.Context, of *transaction) error {
	of.dataset, of.schema = of.batch[0].dataset, p.schema
	var err error
	for range attempts {
		s := of
		s.machine = machine.New()
		if err = p.attempt(ctx, s); err == nil {
			if err = p.acknowledge(s); err == nil {
				return s.errors[0]
			}
		}
		if errors.Is(err, errMoved) {
			if err = p.Attend(ctx); err == nil {
				continue
			}
		}
		if outcomeUnknown(err) || errors.Is(err, errClock) || ctx.Err() != nil {
			break
		}
	}
	return unavailable(err)
}
