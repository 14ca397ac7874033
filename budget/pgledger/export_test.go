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
