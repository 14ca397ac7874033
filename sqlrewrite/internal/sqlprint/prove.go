package sqlprint

import (
	"errors"
	"fmt"
	"slices"

	"noisegate.example/catalog"
	"noisegate.example/internal/fault"
	"noisegate.example/sqlrewrite/internal/steps"
	"noisegate.example/sqlrewrite/verify"
	"noisegate.example/sqlrewrite/verify/memo"
)

// Statement is SQL that Noisegate printed, with every literal as a parameter. It returns Keys columns of text (group keys,
// nullable) followed by Values columns of decimal integers in text form; the latter are sealed the moment they are read. The
// statements of a plan run in one transaction.
type Statement struct {
	SQL           string
	Args          []any // string, int64, []string, nil
	Keys          int
	Values        int
	Preconditions []Precondition // must hold in the transaction that runs the statement
	// AddsUp asks PostgreSQL to add up in each partition of a table whose partitions keep units apart.
	AddsUp bool
	// Partitioned asks PostgreSQL to give each side of the statement's UNION ALL to one process, instead of many to each.
	Partitioned bool
	// Hashes asks PostgreSQL to look up what a join compares for equality, InOrder to join in the order of the text, Blind to plan without
	// a look at the constants.
	Hashes, InOrder, Blind bool
	Ranges                 *Ranges // nil: the statement needs none
	// Zones are the time zones that the text names. PostgreSQL reads a zone's file when a process needs it first, and raises an error where
	// there is none: its transaction has each read first, in the one process that then runs all of it.
	Zones []string
	// Unseeded is which of Args, from 1, waits for the secret seed ([Statement.WithSeed]); 0: none does.
	Unseeded int
	// Awaited are those of Args that are released before the statement runs ([Statement.WithBought]); until then they are [verify.Any].
	// Bought gives the statement with them once these are released; nil: it waits for none.
	Awaited []Awaited
	Bought  func() (Statement, error)
	// Claim is what the price was computed from, about a database of the snapshot On: what [Statement.Prove] proves of SQL and Args under
	// Preconditions.
	Claim verify.Claim
	On    *catalog.Snapshot
	// Proofs are the caller's, where the sender of the statement finds that it is proven; nil: it is proven anew.
	Proofs *Proofs
}

// Precondition is a table's metadata as it was when its policy was checked; a statement runs only while it still holds.
type Precondition struct {
	Schema, Table string
	OID           uint32
	Columns       []PreconditionColumn
	RowSecurity   bool     // row level security may be on
	Partitioned   bool     // its rows are those of its partitions
	Apart         []uint32 // tables to which no foreign key of it may lead
	// Keys are sets of its columns that must be unique, in a table without inheriting children.
	Keys [][]string
	// MostRows is how many rows the table, a public one, may have; 0: the statement does not rest on it.
	MostRows int64
	Checks   []verify.Check // ranges that validated constraints of a prepared copy hold columns to
	Version  int64          // of a prepared copy to which rows are appended, the version whose rows are meant; 0: it has one
}

// PreconditionColumn is one column of a [Precondition].
type PreconditionColumn struct {
	Name    string
	AttNum  int16
	TypeOID uint32
	TypMod  int32
	NotNull bool // NULL on no row
	// MostEqual is how many rows of the table, a public one, may share one value; 0: the statement does not rest on it.
	MostEqual int64
	// Collation is [catalog.Column.Collation]; where that is 0, any will do that takes no two texts for equal.
	Collation uint32
}

// Post is SQL over released values and public tables: what post-processes a release, or a query that reads nothing private. Only this
// package makes one, and what it prints can name no table with a privacy unit, so that nobody need have paid to run it. Its
// last column is the ordinal (bigint, from 1) of the released row that the output row came from, NULL where there is none.
type Post struct {
	sql           string
	args          []any
	preconditions []Precondition
	on            *catalog.Snapshot
	proofs        *Proofs
	free          bool
	zones         []string
}

// NewPost is a text that is proven of a snapshot before it runs; nil: [PostOn] names the snapshot.
func NewPost(text string, args []any, preconditions []Precondition, on *catalog.Snapshot) *Post {
	return &Post{sql: text, args: args, preconditions: preconditions, on: on}
}

// PostOn names the snapshot for which a text is proven, and where the proof is remembered; nil: nowhere.
func PostOn(p *Post, on *catalog.Snapshot, proofs *Proofs) { p.on, p.proofs = on, proofs }

// PostWith is the text with arguments.
func PostWith(p *Post, args []any) Post {
	return Post{sql: p.sql, args: args, preconditions: p.preconditions, on: p.on, proofs: p.proofs}
}

// PostFree is a text that is the whole of a question, which nobody pays for: its result is bounded.
func PostFree(p *Post) Post {
	free := *p
	free.free = true
	return free
}

// Zones are the time zones that the text names.
func (p Post) Zones() []string { return p.zones }

// Free reports whether nobody pays for what the text gives.
func (p Post) Free() bool { return p.free }

// SQL is the text.
func (p Post) SQL() string { return p.sql }

// Args are its arguments: string, or []*string for text arrays with NULLs.
func (p Post) Args() []any { return p.args }

// Preconditions are the public tables that it reads, on the protected database; none: it runs anywhere.
func (p Post) Preconditions() []Precondition { return p.preconditions }

// Proofs are the remembered proofs of the analyst who asks; nil: none are remembered.
func (p Post) Proofs() *Proofs { return p.proofs }

// Proofs remember which statements are proven; see [Statement.Prove]. The zero value is ready for use.
type Proofs = memo.Memo

// WithSeed is the statement with a secret seed, by which it chooses what it keeps of each unit; itself, where it needs none.
func (s Statement) WithSeed(seed int64) Statement {
	if s.Unseeded > 0 {
		s.Args = slices.Clone(s.Args)
		s.Args[s.Unseeded-1] = seed
		s.Unseeded = 0
	}
	return s
}

// Prove holds a statement as it is against its claim, by package verify, which knows nothing of how it was made: internal/unverified if it
// moves by more when one unit comes or goes, if that cannot be told, or if nobody gave it the seed that it needs.
func (s Statement) Prove(proofs *Proofs) error {
	if s.Unseeded > 0 {
		return fault.Unverified(errUnseeded)
	}
	if s.On == nil {
		return fault.Unverified(errUnclaimed)
	}
	return unproven(proofs.Statement(s.SQL, s.Args, s.On, s.Claimed()), s.SQL)
}

// Work is [memo.Memo.Work], or [memo.Memo.WorkOf].
type Work func(sql string, args []any, on *catalog.Snapshot, c verify.Claim) (verify.Work, error)

// ClaimWork proves the statement as [Statement.Prove] does, and claims the time that was derived of its text.
func (s *Statement) ClaimWork(n *steps.Count, work Work) error {
	seeded := s.WithSeed(0)
	taken, err := work(seeded.SQL, seeded.Args, seeded.On, seeded.Claimed().Counted(n))
	s.Claim.Work = taken
	return unproven(err, s.SQL)
}

// Claimed is the claim under the preconditions that will hold while the statement runs, and no others.
func (s Statement) Claimed() verify.Claim {
	c := s.Claim
	c.Zones = s.Zones
	c.Pins = make([]verify.Pin, len(s.Preconditions))
	for i, p := range s.Preconditions {
		c.Pins[i] = verify.Pin{Schema: p.Schema, Table: p.Table, OID: p.OID, Keys: p.Keys, MostRows: p.MostRows, Checks: p.Checks,
			Columns: make([]verify.PinnedColumn, len(p.Columns))}
		for j, col := range p.Columns {
			c.Pins[i].Columns[j] = verify.PinnedColumn{Name: col.Name, AttNum: col.AttNum, TypeOID: col.TypeOID, TypMod: col.TypMod,
				NotNull: col.NotNull, MostEqual: col.MostEqual}
		}
	}
	return c
}

// Prove holds a dry run against what it may do: explain a statement that is proven, and compute over rows that are made up, of no table.
func (d DryRun) Prove(proofs *Proofs) error {
	if err := d.For.Prove(proofs); err != nil {
		return err
	}
	sql, _ := d.Text()
	return unproven(proofs.Public(sql, d.For.On), sql)
}

var (
	errUnclaimed = errors.New("a statement without a claim")
	errUnbought  = errors.New("a statement without a value that is released before it")
	errUnseeded  = errors.New("a statement without its secret seed")
)

// Prove holds a query as it is against what it may read: public tables, and what it is given.
func (p Post) Prove(proofs *Proofs) error {
	on := p.on
	if len(p.preconditions) == 0 {
		on = nil
	}
	return unproven(proofs.Public(p.sql, on), p.sql)
}

// unproven is the refusal with the text, which has parameters for constants.
func unproven(err error, sql string) error {
	if err == nil {
		return nil
	}
	return fault.Unverified(fmt.Errorf("%w: %s", err, sql))
}
