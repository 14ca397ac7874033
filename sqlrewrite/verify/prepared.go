package verify

import (
	"math/big"
	"slices"

	pgquery "github.com/pganalyze/pg_query_go/v6"

	"noisegate.example/catalog"
	"noisegate.example/sqlrewrite/verify/internal/copying"
	"noisegate.example/sqlrewrite/verify/internal/relation"
	"noisegate.example/sqlrewrite/verify/internal/tree"
	"noisegate.example/sqlrewrite/verify/internal/value"
)

// Prepared tables. A copy of a table has, in place of the unit's id, a number for each unit, and a rank.
//
// **Lemma 13, what a unit has in a copy.** Let (unit, rank) be a pinned key of a table, rank a whole number that is NULL on no row, and let
// a pinned check hold it in [a, b]. Then at most b - a + 1 rows agree in the unit, and at most m - a + 1 of those with rank <= m. *Proof.*
// They differ in the rank. ∎ PostgreSQL holds keys and checks for all rows that a statement sees, however they came there.
//
// **Lemma 14, whose a row of a copy is.** Let a copy be what Build accepts: INSERT INTO copy SELECT u.unit, r.rank, r.x, ... FROM (q) AS
// r JOIN units AS u ON u.id = r.id WHERE r.rank <= m, where q is derived as rows of one unit each, r.id is that unit, and the table of
// units has a different number for each id. Then the rows of one number are one unit's, and are, but for the number, functions of that
// unit's rows and of the seed. *Proof.* By Lemma 0 the rows of q are, unit by unit, functions of the unit's rows; the join adds the
// number to each and, as id is a key of units, makes no row two; as unit is another key of it, no two ids have one number. The ids that
// have a number are, by the second text, those that a row of the source has, which is a function of that unit's rows again, and others
// that no row of q has. Numbered sees in the same snapshot that both are keys, and Added sees it of the ids of appended rows: no other is
// given a number then, and each was seen when it got its own, which it keeps while a copy has it. ∎ Neighbouring databases may give a
// unit two numbers. So no statement over a copy names them, but in count(DISTINCT number): what a statement gives is the same whatever
// they are, as long as no two units have one. Of the rows of one unit there is one number: it moves such a count by 1 in a group.
//
// **Lemma 16, ranks in a copy.** Let q be one of which, for a set of keys, two outputs g and n are derived as dense_rank() of the keys'
// tuples within the unit and row_number() within the tuple, by an order without ties, both of the rows with rank <= m (places). Then they
// are in the copy what they are in Lemma 3: of the rows with g <= G a unit has at most G different tuples, of those with n <= r at most r
// for each tuple, and so of both at most G·r. *Proof.* The copy has those rows, under numbers that are as many as the units (Lemma 14). ∎
// Nobody writes to such a copy later: to one with ranks no rows are appended.
//
// A copy is a function of a seed that nobody knows, drawn anew for each; for every seed the copies of neighbours are neighbours.
//
// **Lemma 15, what is appended.** Let the rows of each number in a copy be functions of its unit's rows, and let Merge run: the rows that
// Insert makes of other times (added), and those of the copy whose hash is above the least of their number's among these, which leave it
// (moved), are numbered together from the last rank of the others on, and put in up to rank m. Then the rows of each number are functions
// of its unit's rows again. *Proof.* By Lemma 14 added is, number by number, a function of the unit's rows, and Insert's table of numbers
// is the copy's. Each of the other steps compares, joins or numbers rows of one number alone, in an order without ties: rank is a key of
// a number's rows in the copy, and so it is in added, and new tells these apart. ∎ The text is fixed but for Insert's: it is compared,
// not derived.

// Copying are the two statements that make a copy of a table, in the order in which they run.
type Copying struct {
	Units  string // gives a number to each unit that has none
	Insert string // fills the copy; $1 is the seed, and where rows are appended $2 and $3 are times
	Merge  string // puts to the copy what Insert makes of other times; "": no rows are appended
	Copy   *catalog.Table
	// Numbered runs between the two, and must be true of the rows of UnitsTable: no id and no number is on two of them. Added says so of the
	Numbered, Added string // ids that Units has seen, which is enough before Merge
	UnitsTable      string // the table of the numbers, in the schema of the copy
	Pins            []Pin  // what holds of the source while they run
}

// Build proves of the statements that make a copy that its rows are as Lemma 14 says, or says why it cannot: nil means proven.
func Build(b Copying, on *catalog.Snapshot) (err error) {
	defer tree.Caught(&err)
	if b.Copy == nil || b.Copy.Copy == nil || b.Copy.Copy.MaxRows < 1 || b.UnitsTable == b.Copy.Name {
		refuse("no copy")
	}
	t := copying.Tables{Schema: b.Copy.Schema, Copy: b.Copy.Name, Units: b.UnitsTable, Unit: b.Copy.Unit.Column, Rank: catalog.RankColumn}
	t.Checked(b.Numbered, b.Added, b.Units)
	in := t.Read(b.Insert)
	var times []any // which are any (Lemma 5a)
	if hashed := b.Copy.Columns[len(b.Copy.Columns)-1].Name == catalog.HashColumn; hashed {
		times = []any{int64(0), int64(0)}
	}
	if times == nil && b.Merge != "" || times != nil && len(b.Copy.Copy.Ranks) > 0 || times != nil && b.Merge != t.Merge(b.Insert, in) {
		refuse("rows are appended in another way")
	}
	b.fills(on, in, times)
	_, rel := b.derive(on, t.ReadIDs(b.Units), times)
	owns(rel, rel.Columns[0].Name)
	return nil
}

// fills proves the INSERT into the copy.
func (b Copying) fills(on *catalog.Snapshot, in copying.Rows, times []any) {
	named := slices.EqualFunc(in.Columns, b.Copy.Columns, func(name string, c *catalog.Column) bool { return name == c.Name })
	if in.Columns[0] != b.Copy.Unit.Column || in.Columns[1] != catalog.RankColumn || in.Outputs[0] != in.Rank || in.Most < 1 ||
		in.Most > b.Copy.Copy.MaxRows {
		refuse("a copy that keeps more rows of a unit than it may, or names its columns otherwise")
	}
	if !named {
		refuse("a copy that has other columns")
	}
	d, rel := b.derive(on, in.Query, append([]any{int64(0)}, times...)) // which is any seed: nothing is known of it but its type (Lemma 5a)
	owns(rel, in.ID)
	b.places(d, rel, in)
	own := b.Copy.Copy.Own() - 1 // of the columns but the unit's
	for i, name := range in.Outputs {
		secret := times != nil && i == len(in.Outputs)-1 // the hash, which no statement over a copy is to name
		if v := rel.Find("", name); v == nil || v.Vague || v.Opaque && (!secret || v.Constant) || v.Sum != nil || v.Ident != "" ||
			len(v.Anchors) > 0 ||
			i >= own && v.Kind != value.KindOf(b.Copy.Columns[i+1].Type) {
			refuse("an output of a copy that is no function of a unit's rows, that tells one or the seed, or that is of another type")
		} else if i >= own && v.Kind == value.Text && !d.cut(v.ID, b.Copy.Columns[i+1].LongestText()) {
			refuse("texts of a copy that may be longer than those that count")
		}
	}
}

// derive derives the rows of a query over the source.
func (b Copying) derive(on *catalog.Snapshot, q *pgquery.SelectStmt, args []any) (*derivation, *relation.Relation) {
	d := newDerivation("", args, on, b.Pins, nil)
	d.alone = true
	rel := d.query(q, &scope{d: d, number: d.Number()})
	if rel.Released != 0 || d.Unread() {
		refuse("aggregates over many units, or an argument that the text does not name")
	}
	return d, rel
}

// owns refuses rows of which a column does not hold the id of the one unit that each belongs to.
func owns(rel *relation.Relation, name string) {
	owner, v := rel.Owner(), rel.Find("", name)
	if owner == nil || v == nil || v.Vague || !v.Same || !slices.Contains(rel.Roots, v.ID) || !rel.Solid[v.ID] ||
		!slices.ContainsFunc(v.Anchors, func(a value.Anchor) bool { return a.Root && a.Of.Find() == owner }) {
		refuse("rows without a unit are not left out, or the id is not that of the unit")
	}
}

// places refuses ranks that are not those of their set: of groups, and of rows in them, among the rows that the copy keeps.
func (b Copying) places(d *derivation, rel *relation.Relation, in copying.Rows) {
	if len(b.Copy.Copy.Ranks) == 0 {
		return
	}
	if rows := rel.Rows(d.Proof, nil, true); rows == nil || rows.Cmp(big.NewInt(b.Copy.Copy.MaxRows)) > 0 {
		refuse("ranks of rows that the copy does not keep")
	}
	unit := rel.Find("", in.ID)
	for i, set := range b.Copy.Copy.Ranks {
		group, row := rel.Find("", in.Outputs[1+2*i]).Place, rel.Find("", in.Outputs[2+2*i]).Place
		keys := []int{unit.ID}
		for _, name := range set.Keys {
			v := rel.Find("", in.Outputs[slices.Index(in.Columns, name)-1])
			keys = append(keys, v.ID)
		}
		if group == nil || row == nil || !group.Dense || row.Dense || !slices.Equal(group.Partition, keys[:1]) ||
			!value.Subset(keys[1:], group.Order) ||
			!d.Follow(group.Order, keys) || !value.Subset(keys, row.Partition) || !d.Follow(row.Partition, keys) {
			refuse("ranks of groups or rows that are not by the set's columns within one unit")
		}
	}
}

// cut reports whether a value is CASE WHEN octet_length(x) <= n THEN x END, n at most some number.
func (d *derivation) cut(id int, most int64) bool {
	t := d.Term(id)
	if t.Op != "case" || len(t.Args) != 2 {
		return false
	}
	n := d.Shorter(t.Args[0], t.Args[1])
	return n >= 0 && n <= most
}
