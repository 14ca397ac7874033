package value

import "noisegate.example/catalog"

// Stored is a column as it is stored.
func (d *Terms) Stored(c *catalog.Column) *Value {
	v := d.Make(KindOf(c.Type), d.Fresh())
	v.Nulls, v.Ident = []int{v.ID}, c.Identifies
	switch {
	case v.Kind == Numeric && c.TypMod < 4:
		v.longest = mostPlaces
	case v.Kind == Numeric:
		precision, scale := int((c.TypMod-4)>>16&0xffff), int(c.TypMod-4)&0x7ff
		v.longest = places{int64(max(precision, precision+2048-scale)), 0}
		if scale < 1024 { // 11 bits, two's complement: the others are negative
			v.longest = places{int64(max(precision-scale, 1)), int64(scale)}
			v.Digits, v.Scale, v.Same, v.wide = scale, scale, true, max(precision, scale) <= 300
		}
	case v.Kind == Char && c.TypMod > 4:
		v.Scale, v.Same = int(c.TypMod), true
		v.Chars = int(c.TypMod) - 4
	case v.Kind == Text && c.TypMod > 4:
		v.Chars = int(c.TypMod) - 4
	}
	return v
}

// mostPlaces are those of the longest numeric that PostgreSQL stores.
var mostPlaces = places{131_072, 16_383}
