package scalar

import (
	"cmp"
	"math/big"
	"strings"

	"noisegate.example/catalog"
)

// KeyIdentity is equal for equal tuples only: lengths come first.
func KeyIdentity(keys []catalog.Key) string {
	var b strings.Builder
	for _, k := range keys {
		if k.Null {
			b.WriteString("-,")
			continue
		}
		b.WriteString(big.NewInt(int64(len(k.Text))).String())
		b.WriteByte(':')
		b.WriteString(k.Text)
	}
	return b.String()
}

func CompareKey(t catalog.Type, a, b catalog.Key) int {
	switch {
	case a.Null || b.Null:
		return BoolOrder(a.Null, b.Null)
	case t.IsNumber():
		x, okX := ParseNumber(a.Text)
		y, okY := ParseNumber(b.Text)
		if okX && okY {
			return x.Cmp(y)
		}
		// After all other numbers; by text, or keys of hundreds of digits would stay in the order in which the rows came.
		return cmp.Or(BoolOrder(!okX, !okY), cmp.Compare(a.Text, b.Text))
	case t.IsTime():
		return cmp.Or(cmp.Compare(timeRank(a.Text), timeRank(b.Text)), cmp.Compare(a.Text, b.Text))
	default:
		return cmp.Compare(a.Text, b.Text)
	}
}

func BoolOrder(a, b bool) int {
	switch {
	case a == b:
		return 0
	case a:
		return 1
	default:
		return -1
	}
}

// timeRank orders ISO dates and times whose texts do not compare byte by byte: the infinities, years before Christ, and years
// of more than four digits.
func timeRank(text string) int {
	switch {
	case text == "-infinity":
		return -2
	case strings.HasSuffix(text, " BC"):
		return -1
	case text == "infinity":
		return 10
	default:
		return max(strings.IndexByte(text, '-'), 4)
	}
}
