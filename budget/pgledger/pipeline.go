package pgledger

import (
	"context"
	"errors"
	"slices"
	"time"

	"noisegate.example/budget/internal/machine"
	"noisegate.example/budget/journal"
	"noisegate.example/internal/fault"
)

// pipeline sends one dataset's batches without waiting for each commit. As long as no other gateway writes to the
// dataset, batches are decided from the cache and sent behind each other: each on the assumption that those before it
// will be committed, which its first statement makes sure of (sql/advance.sql). So one that fails takes those behind it
// along, and a commit that is reported includes everything before it.
type pipeline struct {
	ledger     *Ledger
	dataset    string
	cache      *cache         // once all that is in flight is committed; may be nil
	connection *connection    // nil: none is open
	onWay      []*transaction // oldest first
}

// turn is how long a dataset that has always something to do keeps a connection: there may be more such datasets than connections.
const turn = 100 * time.Millisecond

// newPipeline begins with the cache of the dataset's last pipeline. There is one at a time.
func (p *Ledger) newPipeline(dataset string) outlet {
	p.caches.mu.Lock()
	defer p.caches.mu.Unlock()
	return &pipeline{ledger: p, dataset: dataset, cache: p.caches.byDataset[dataset]}
}

func (c *pipeline) close() {
	c.connection.close()
	p := c.ledger
	p.caches.mu.Lock()
	defer p.caches.mu.Unlock()
	if p.caches.byDataset == nil {
		p.caches.byDataset = map[string]*cache{}
	}
	p.caches.byDataset[c.dataset] = c.cache
}

// send implements [outlet].
func (c *pipeline) send(batch []*operation) bool {
	s := &transaction{dataset: c.dataset, schema: c.ledger.schema, batch: batch, machine: machine.New()}
	s.own = c.ledger.own()
	if !c.upToDate() || !c.cache.prepare(s) {
		return false
	}
	if s.decide(); !s.admitted() {
		return false
	}
	s.head, s.stock = journal.Seal(s.head, s.machine.Written, s.seqs), stocked*len(batch)
	if c.connection == nil {
		var err error
		if c.connection, err = openConnection(c.ledger.pool); err != nil {
			return false
		}
	}
	if !c.connection.send(s) {
		return false
	}
	c.cache.expect(s)
	c.onWay = append(c.onWay, s)
	return true
}

// upToDate reports whether this process knows no entry newer than the cache's beginning, or than what is in flight.
func (c *pipeline) upToDate() bool {
	if c.cache == nil {
		return false
	}
	newest := c.ledger.newest(c.dataset)
	if newest == c.cache.head {
		return true
	}
	for _, s := range c.onWay {
		if newest == s.began || newest == s.head {
			return true
		}
	}
	return false
}

// land implements [outlet]. When the connection was held for long enough it waits for all that is in flight, and lets others have it.
func (c *pipeline) land() (onWay int) {
	handOver := c.connection.since(turn)
	for len(c.onWay) > 0 {
		s := c.onWay[0]
		if err := c.connection.receive(s); err != nil {
			c.recover(err)
			return 0
		}
		c.onWay = c.onWay[1:]
		c.cache.learn(s)
		c.ledger.tell(s)
		if !handOver {
			break
		}
	}
	if handOver {
		c.disconnect()
	}
	for _, s := range c.onWay {
		onWay += len(s.batch)
	}
	return onWay
}

// disconnect gives the connection back, while nothing is in flight.
func (c *pipeline) disconnect() {
	c.connection.close()
	c.connection = nil
}

// recover finds out what became of all that is in flight, and does again what was not committed. It is for when the oldest was not answered
// by a commit.
func (c *pipeline) recover(failure error) {
	sent := c.onWay
	c.onWay = nil
	failures := []error{failure}
	for _, s := range sent[1:] {
		failures = append(failures, c.connection.receive(s))
	}
	c.disconnect()
	c.cache = c.cache.forget(sent[0].began)
	for i, s := range sent {
		switch {
		case failures[i] == nil:
			c.ledger.tell(s)
		case outcomeUnknown(failures[i]):
			c.again(s.batch, s)
		default:
			c.run(s.batch)
		}
	}
}

// run implements [outlet].
func (c *pipeline) run(batch []*operation) { c.again(batch, nil) }

// again runs a batch in one transaction, which looks at the ledger first: also whether another one, lost, was committed
// that had been sent for it and was not answered. If it was not, it cannot be any more once this one is, because it
// only writes where the journal ended before; and this one does write, because at the same end of the journal and a
// later time nothing is refused that was admitted.
//
// A failure that one of the operations may have caused does not touch the others: then each is tried by itself.
func (c *pipeline) again(batch []*operation, lost *transaction) {
	c.disconnect() // it takes a connection: if pipelines waited for one while they hold one, all might wait
	ctx, cancel := context.WithTimeout(context.Background(), transactionPatience)
	defer cancel()
	var err error
	attended := false
	for range attempts {
		s := &transaction{dataset: c.dataset, schema: c.ledger.schema, batch: batch, machine: machine.New(), lost: lost}
		if c.cache != nil && c.cache.alone >= aloneFor-1 {
			s.stock = stocked * len(batch)
		}
		if err = c.ledger.attempt(ctx, s); err == nil {
			c.ledger.tell(s)
			c.cache = c.cache.after(s)
			return
		}
		if errors.Is(err, errCommitted) && slices.Equal(lost.batch, batch) && !lost.overruled {
			c.ledger.tell(lost)
			return
		}
		if lost != nil {
			lost.overruled = lost.overruled || s.errors != nil
		}
		if mayBeOnesFault(err) {
			for _, op := range batch {
				op.open = nil // another gateway may have ended it: look
			}
			if len(batch) > 1 {
				for _, op := range batch {
					c.again([]*operation{op}, lost)
				}
				return
			}
		}
		if errors.Is(err, errMoved) {
			if e := c.ledger.Attend(ctx); e != nil {
				err = e
				break
			}
			continue
		}
		if broken, ok := errors.AsType[*journal.BrokenError](err); ok && broken.Held && !attended {
			if attended = true; c.ledger.attendSoon(ctx) == nil {
				continue
			}
		}
		if ctx.Err() != nil || final(err) {
			break
		}
	}
	c.giveUp(batch, err)
}

// final reports whether another attempt would fail as this one did, or might write twice.
func final(err error) bool {
	if _, ok := errors.AsType[*journal.BrokenError](err); ok {
		return true
	}
	return slices.ContainsFunc([]error{errUndecided, errCommitted, errSchema, errClock}, func(e error) bool { return errors.Is(err, e) })
}

// unavailable is the fault of what could not be written.
func unavailable(err error) error {
	if errors.Is(err, errClock) {
		return fault.LedgerClock(err)
	}
	return fault.DataUnavailable(err)
}

func (c *pipeline) giveUp(batch []*operation, err error) {
	for _, op := range batch {
		c.ledger.group.finish(op, unavailable(err))
	}
}
