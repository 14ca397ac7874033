package algebra

import "fmt"

// RowCap is an item of FROM of which each unit, or each value of another column that belongs to one unit, keeps at most some number of
// rows: those that come first in an order by a keyed hash of all that the statement reads of them. Which rows stay is a function of that
// unit's rows alone; docs/sql/relations.md proves it. Of a public table, beside a prepared copy, each value of a column keeps so many, in
// an order by what the statement reads.
type RowCap struct {
	Leaf  `node:"1,-"`
	Of    FromItem `node:"2"`
	By    *Field   `node:"3,encoded"` // rows with one value of it are one unit's; rows where it is NULL belong to nobody
	Units bool     `node:"4,encoded"` // by is the unit's id
	Rows  int64    `node:"5,encoded"` // number of rows that stay; 0: it is not capped, and prints as Of
	// most is what the policy says of one unit, its rows of all its groups; least is what the cap is not lowered below.
	Least, Most int64    `node:"6 7,-"`
	Bare        bool     `node:"8,-"`        // conditions cost too much to be tested on every row
	Where       Expr     `node:"9,encoded"`  // conditions on its rows alone, which hold above too: what fails them takes no place; nil: none
	Outputs     []*Field `node:"10,encoded"` // printed as c0, c1, ...
}

// Active reports whether it leaves rows out.
func (c *RowCap) Active() bool { return c.Rows > 0 }

// Narrow lowers the cap by an eighth; false if it is as low as it may be.
func (c *RowCap) Narrow() bool {
	if c.Rows <= c.Least {
		return false
	}
	c.Rows = max(c.Least, c.Rows-c.Rows/8-1)
	return true
}

// Text says it in the plan.
func (c *RowCap) Text() string {
	if RowsOf(c.Of) == PublicRows {
		return fmt.Sprintf("at most %d rows of each %s", c.Rows, c.By.Name)
	}
	return fmt.Sprintf("at most %d rows of each %s, chosen by a keyed hash", c.Rows, c.By.Name)
}
