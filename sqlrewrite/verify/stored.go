package verify

import "noisegate.example/catalog"

// leaf is a column as it is stored.
func (d *Terms) leaf(c *catalog.Column) *value {
	v := d.make(kindOf(c.Type), d.fresh())
	v.nulls, v.ident = []int{v.id}, c.Identifies
	switch {
	case v.kind == numeric && c.TypMod < 4:
		v.longest = mostPlaces
	case v.kind == numeric:
		precision, scale := int((c.TypMod-4)>>16&0xffff), int(c.TypMod-4)&0x7ff
		v.longest = places{int64(max(precision, precision+2048-scale)), 0}
		if scale < 1024 { // 11 bits, two's complement: the others are negative
			v.longest = places{int64(max(precision-scale, 1)), int64(scale)}
			v.digits, v.scale, v.same, v.wide = scale, scale, true, max(precision, scale) <= 300
		}
	case v.kind == bpchar && c.TypMod > 4:
		v.scale, v.same = int(c.TypMod), true
		v.chars = int(c.TypMod) - 4
	case v.kind == text && c.TypMod > 4:
		v.chars = int(c.TypMod) - 4
	}
	return v
}
