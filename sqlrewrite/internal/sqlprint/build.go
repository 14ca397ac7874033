package sqlprint

import (
	"crypto/sha256"
	"fmt"

	"noisegate.example/catalog"
	"noisegate.example/sqlrewrite/verify"
)

// Build is what makes a prepared copy of a table: SQL for the role that prepares, in one transaction, in this order. What it reads of
// people is proven by [Build.Prove]. docs/prepared.md says what a copy is.
type Build struct {
	Copy  *catalog.Table // without its OID
	Units string         // the table of numbers of units, in the schema of copies

	NeedUnits  string // makes that table where it is not there
	AddUnits   string // gives numbers to units that have none; its arguments are those of Fill without the seed
	Numbered   string // says whether ids and numbers are keys of each other then, by the rows themselves; no copy is made where they are not
	Added      string // says it of the ids that AddUnits has seen: others were when they came
	Create     string // makes the copy, empty, with columns of the types of the source
	Fill, Rows string // fills it, and its query; $1 is a secret seed, a bigint; where rows are appended, of the times after $2, up to $3
	Merge      string // puts the rows of the times after $2, up to $3, to those of a copy with this seed; "": it is made anew each time
	Same       string // says whether the copy is what Fill would make of the same arguments; where rows are appended, else ""
	Constrain  []string
	Conditions []Precondition // must hold of the source in that transaction
	Digest     [32]byte       // of what makes it: a version is what its policy asks for where this is the same

	on *catalog.Snapshot
	// The texts by which appended and ranked rows were first made and seen. What does so today makes the same copies: their digest stays,
	// and with it what was released of them.
	first struct{ merge, ranked string }
}

// digest identifies what a version is made by.
func (b *Build) digest() (sum [32]byte) {
	h := Identity{sha256.New()}
	h.Add("noisegate build 1", b.NeedUnits, b.AddUnits, b.Numbered, b.Create, b.Fill)
	if b.first.merge != "" {
		h.Add(b.first.merge)
	}
	h.Add(b.Constrain...)
	if b.first.ranked != "" {
		h.Add("ranked", b.first.ranked)
	}
	for _, p := range b.Conditions {
		h.Add(fmt.Sprintf("%+v", p))
	}
	h.Sum(sum[:0])
	return sum
}

// Prove holds the statements that read people against what a copy must be; see [verify.Build].
func (b *Build) Prove() error {
	pins := Statement{Preconditions: b.Conditions}.Claimed().Pins
	texts := verify.Copying{Units: b.AddUnits, Numbered: b.Numbered, Added: b.Added, Insert: b.Fill, Merge: b.Merge, Copy: b.Copy,
		UnitsTable: b.Units, Pins: pins}
	return unproven(verify.Build(texts, b.on), b.Fill)
}

// ofCopy adds to the preconditions of a copy what bounds its rows.
func (p *Precondition) ofCopy(t *catalog.Table) {
	if t.Copy == nil {
		return
	}
	p.Version = t.Copy.Version
	p.Keys = append(p.Keys, t.Unique[0])
	p.Checks = append(p.Checks, verify.Check{Column: catalog.RankColumn, Lo: 1, Hi: t.Copy.MaxRows})
}
