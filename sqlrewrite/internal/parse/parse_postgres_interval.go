package parse

import (
	"fmt"
	"math/big"
	"strconv"

	"noisegate.example/sqlrewrite/internal/scalar"
	"noisegate.example/sqlrewrite/syntax"
)

// Intervals that are computed of constants become one constant: INTERVAL '90' DAY, 30 * INTERVAL '1 day' and (-6 || ' day')::interval are
// '90 day' and their like.

// intervalFields are the units of INTERVAL '90' DAY by the modifier that the grammar writes for them (INTERVAL_MASK in PostgreSQL's
// utils/timestamp.h).
var intervalFields = map[int32]string{1 << 2: "year", 1 << 1: "month", 1 << 3: "day", 1 << 10: "hour", 1 << 11: "minute", 1 << 12: "second"}

// intervalField gives the number in the text of an interval its unit.
func (c *converter) intervalField(at syntax.Pos, cast *syntax.Cast) {
	unit, known := intervalFields[cast.Mods[0]]
	text, isLiteral := cast.X.(*syntax.Literal)
	if known && len(cast.Mods) == 1 && isLiteral && text.Kind == syntax.StringLiteral {
		if n, err := strconv.ParseInt(text.Text, 10, 32); err == nil {
			cast.X = &syntax.Literal{Pos: text.Pos, Kind: syntax.StringLiteral, Text: fmt.Sprintf("%d %s", n, unit)}
			cast.Mods = nil
			return
		}
	}
	c.refuse(at, "these fields or this precision of an interval type", "write the unit in the text: INTERVAL '1 day'")
}

// constantText makes the text of a date, time or interval that is put together of constants one constant.
func (c *converter) constantText(cast *syntax.Cast) {
	if joined, ok := cast.X.(*syntax.Binary); ok && joined.Op == syntax.Concat {
		switch text, known := textOf(joined); {
		case !known:
		case cast.Type == "interval", cast.Type == "date", cast.Type == "timestamp", cast.Type == "timestamptz":
			cast.X = &syntax.Literal{Pos: cast.X.At(), Kind: syntax.StringLiteral, Text: text}
		}
	}
}

// timesInterval is a whole number times a constant interval as one constant; other operations stay.
func timesInterval(e *syntax.Binary) syntax.Expr {
	times, by := e.L, e.R
	if _, first := times.(*syntax.Cast); first {
		times, by = by, times
	}
	cast, ok := by.(*syntax.Cast)
	if !ok || e.Op != syntax.Multiply || cast.Type != "interval" || cast.Mods != nil {
		return e
	}
	text, ok := cast.X.(*syntax.Literal)
	if !ok || text.Kind != syntax.StringLiteral {
		return e
	}
	digits, isText := textOf(times)
	n, isNumber := new(big.Int).SetString(digits, 10)
	months, days, micros, ok := scalar.ParseInterval(text.Text)
	if literal, isLiteral := times.(*syntax.Literal); !ok || !isText || !isNumber || isLiteral && literal.Kind == syntax.StringLiteral {
		return e
	}
	part := func(v int64) *big.Int { return new(big.Int).Mul(big.NewInt(v), n) }
	return &syntax.Cast{Pos: e.Pos, Type: cast.Type, X: &syntax.Literal{Pos: text.Pos, Kind: syntax.StringLiteral,
		Text: fmt.Sprintf("%s months %s days %s microseconds", part(months), part(days), part(micros))}}
}
