package sqlrewrite

// Columns describes the outputs of the answer before there is one: names, kinds and the half-widths of their noise.
func (p *Plan) Columns() []Column {
	columns := make([]Column, len(p.outputs))
	for i, o := range p.outputs {
		columns[i] = o.column
	}
	return columns
}
