package relation

import (
	"slices"

	"noisegate.example/catalog"
	"noisegate.example/sqlrewrite/verify/internal/ranges"
	"noisegate.example/sqlrewrite/verify/internal/value"
)

// Pins. A proof uses what the catalog says of a table only as far as a pin says that it will still hold in the transaction that runs the
// statement: a table without a pin cannot be read, a column that is not pinned is never read (a * of its
// table is refused, and so is a name that it may hide), and a key that is not pinned is none. A pin
// must say of the table and its columns what the snapshot says. So pins cover whatever a proof used, and pinning less proves less.

// of is the pin of a table.
func (b *pinBook) of(t *catalog.Table) *Pin {
	for i, p := range b.given {
		if p.Schema == t.Schema && p.Table == t.Name {
			if p.OID != t.OID {
				refuse("a pin of another table of the name")
			}
			return &b.given[i]
		}
	}
	refuse("a table without a pin")
	return nil
}

// column is the pin of a column; nil if there is none.
func (p *Pin) column(c *catalog.Column) *PinnedColumn {
	for i, pinned := range p.Columns {
		if pinned.Name != c.Name {
			continue
		}
		if pinned.AttNum != c.AttNum || pinned.TypeOID != c.TypeOID || pinned.TypMod != c.TypMod {
			refuse("a pin of another column of the name")
		}
		return &p.Columns[i]
	}
	return nil
}

// unique reports whether a column alone is a pinned key.
func (p *Pin) unique(column string) bool {
	return slices.ContainsFunc(p.Keys, func(k []string) bool { return len(k) == 1 && k[0] == column })
}

// check narrows a column to what a pinned check holds it to.
func (p *Pin) check(v *value.Value, column string) {
	for _, c := range p.Checks {
		if c.Column != column {
			continue
		}
		if c.Lo > c.Hi || !v.Kind.IsInteger() {
			refuse("a pinned check of no range, or of what is no whole number")
		}
		v.Within, v.Checked = v.Within.Meet(ranges.Of(c.Lo, c.Hi)), true
	}
}
