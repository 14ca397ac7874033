package pgledger

import "time"

// Believe makes the ledger one that is written for another schema, whose last migration is so much newer.
func (p *Ledger) Believe(newer int) { p.schema += newer }

// Age makes the charges that the process has open older.
func (p *Ledger) Age(by time.Duration) {
	p.open.Range(func(id, known any) bool {
		older := *known.(*openCharge)
		older.opened = older.opened.Add(-by)
		p.open.Store(id, &older)
		return true
	})
}

// Reads makes a process one that reads entries of a dataset, until it is told to end.
func (p *Ledger) Reads(dataset string) (end func()) {
	f := p.known.of(dataset)
	f.mu.Lock()
	return f.mu.Unlock
}

// Wait lets so much time pass since the process first looked at the server of the control database.
func (p *Ledger) Wait(d time.Duration) {
	p.attending.Lock()
	defer p.attending.Unlock()
	p.attendance.since = p.attendance.since.Add(-d)
}
