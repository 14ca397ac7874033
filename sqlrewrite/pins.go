package sqlrewrite

// pins are the metadata of the tables that the statement relies on: every column that it names, and every key that a proof used.
func pins(q *boundQuery) []Pin {
	used := make(map[*field]bool)
	walk := func(e expr) { markFields(e, used) }
	for _, o := range q.source.owners {
		used[o] = true
	}
	walk(q.where)
	for _, k := range q.keys {
		walk(k.x)
	}
	for _, m := range q.measures {
		walk(m.filter)
		walk(m.x)
		walk(m.y)
	}
	var all []Pin
	for _, s := range scans(q.source.node) {
		pin := Pin{Schema: s.table.Schema, Table: s.table.Name, OID: s.table.OID}
		for _, f := range s.fields {
			key := len(s.relied) > 0 && s.relied[0][0] == f.Name
			if used[f] || key {
				pin.Columns = append(pin.Columns, PinnedColumn{Name: f.Name, AttNum: f.AttNum, TypeOID: f.TypeOID, TypMod: f.TypMod, Key: key})
			}
		}
		all = append(all, pin)
	}
	return all
}

// markFields collects the fields that an expression names.
func markFields(e expr, used map[*field]bool) {
	if e == nil {
		return
	}
	if c, ok := e.(column); ok {
		used[c.of] = true
	}
	for _, child := range children(e) {
		markFields(child, used)
	}
}
