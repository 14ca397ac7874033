package sqlrewrite

// publicPins are the metadata of public tables that a statement relies on.
func publicPins(scans []*layerScan) []Pin {
	var pins []Pin
	for _, s := range scans {
		pin := Pin{Schema: s.table.Schema, Table: s.table.Name, OID: s.table.OID}
		for _, f := range s.fields {
			pin.Columns = append(pin.Columns, PinnedColumn{Name: f.Name, AttNum: f.AttNum, TypeOID: f.TypeOID, TypMod: f.TypMod})
		}
		pins = append(pins, pin)
	}
	return pins
}
