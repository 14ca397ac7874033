package budget

import (
	"context"
	"errors"
	"slices"
	"time"

	"noisegate/internal/fault"
)

// course is the way of one dataset's batches to the ledger. As long as no other gateway writes to it, they are decided
// from memory and sent behind each other: each on the assumption that those before it will be committed, which its
// first statement makes sure of (sql/advance.sql). So one that was not takes those behind it along, and whoever is told
// of a commit is told of one that everything before it has.
type course struct {
	ledger  *Postgres
	dataset string
	memory  *remembered // once all that is on its way is committed; may be nil
	stream  *stream     // nil: none is open
	onWay   []*session  // oldest first
}

// turn is how long a dataset that has always something to do keeps a connection: there may be more such datasets than connections.
const turn = 100 * time.Millisecond

// setOut begins with what the dataset's last course remembered. There is one at a time.
func (p *Postgres) setOut(dataset string) outlet {
	p.recalls.mu.Lock()
	defer p.recalls.mu.Unlock()
	return &course{ledger: p, dataset: dataset, memory: p.recalls.byDataset[dataset]}
}

func (c *course) close() {
	c.stream.close()
	p := c.ledger
	p.recalls.mu.Lock()
	defer p.recalls.mu.Unlock()
	if p.recalls.byDataset == nil {
		p.recalls.byDataset = map[string]*remembered{}
	}
	p.recalls.byDataset[c.dataset] = c.memory
}

// send implements [outlet].
func (c *course) send(batch []*operation) bool {
	s := &session{dataset: c.dataset, schema: c.ledger.schema, batch: batch, desk: newDesk()}
	if !c.upToDate() || !c.memory.recall(s) {
		return false
	}
	if s.decide(); !s.admitted() {
		return false
	}
	s.head, s.stock = seal(s.head, s.desk.journal, s.seqs), stocked*len(batch)
	if c.stream == nil {
		var err error
		if c.stream, err = openStream(c.ledger.pool); err != nil {
			return false
		}
	}
	if !c.stream.send(s) {
		return false
	}
	c.memory.expect(s)
	c.onWay = append(c.onWay, s)
	return true
}

// upToDate reports whether this process knows of no newer entry than memory begins with, or than what is on its way.
func (c *course) upToDate() bool {
	if c.memory == nil {
		return false
	}
	newest := c.ledger.newest(c.dataset)
	if newest == c.memory.head {
		return true
	}
	for _, s := range c.onWay {
		if newest == s.began || newest == s.head {
			return true
		}
	}
	return false
}

// land implements [outlet]. When the connection was held for long enough it waits for all that is on its way, and lets others have it.
func (c *course) land() (onWay int) {
	handOver := c.stream.since(turn)
	for len(c.onWay) > 0 {
		s := c.onWay[0]
		if err := c.stream.receive(s); err != nil {
			c.recover(err)
			return 0
		}
		c.onWay = c.onWay[1:]
		c.memory.learn(s)
		c.ledger.tell(s)
		if !handOver {
			break
		}
	}
	if handOver {
		c.hangUp()
	}
	for _, s := range c.onWay {
		onWay += len(s.batch)
	}
	return onWay
}

// hangUp gives the connection back, while nothing is on its way.
func (c *course) hangUp() {
	c.stream.close()
	c.stream = nil
}

// recover finds out what became of all that is on its way, after the oldest was not answered by a commit, and does
// again what was not committed.
func (c *course) recover(failure error) {
	sessions := c.onWay
	c.onWay = nil
	failures := []error{failure}
	for _, s := range sessions[1:] {
		failures = append(failures, c.stream.receive(s))
	}
	c.hangUp()
	c.memory = c.memory.forget(sessions[0].began)
	for i, s := range sessions {
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
func (c *course) run(batch []*operation) { c.again(batch, nil) }

// again runs a batch in one transaction, which looks at the ledger first: also whether another one, lost, was committed
// that had been sent for it and was not answered. If it was not, it cannot be any more once this one is, because it
// only writes where the journal ended before; and this one does write, because at the same end of the journal and a
// later time nothing is refused that was admitted.
//
// A failure that one of the operations may have caused does not touch the others: then each is tried by itself.
func (c *course) again(batch []*operation, lost *session) {
	c.hangUp() // it takes a connection: if courses waited for one while they hold one, all might wait
	ctx, cancel := context.WithTimeout(context.Background(), sessionPatience)
	defer cancel()
	var err error
	for range attempts {
		s := &session{dataset: c.dataset, schema: c.ledger.schema, batch: batch, desk: newDesk(), lost: lost}
		if c.memory != nil && c.memory.alone >= aloneFor-1 {
			s.stock = stocked * len(batch)
		}
		if err = c.ledger.attempt(ctx, s); err == nil {
			c.ledger.tell(s)
			c.memory = c.memory.after(s)
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
		var broken *BrokenError
		if ctx.Err() != nil || errors.Is(err, errUndecided) || errors.Is(err, errCommitted) || errors.Is(err, errSchema) ||
			errors.As(err, &broken) {
			break
		}
	}
	c.giveUp(batch, err)
}

func (c *course) giveUp(batch []*operation, err error) {
	for _, op := range batch {
		c.ledger.writers.finish(op, fault.DataUnavailable(err))
	}
}
