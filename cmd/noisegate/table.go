package main

import (
	"fmt"
	"io"
	"math"
	"math/big"
	"strconv"
	"strings"
	"unicode/utf8"

	"noisegate.example/internal/exact"
)

// table lays out rows in columns as psql does. Cells that are numbers stand right, others left.
type table struct {
	grouped bool // thousands are separated, for people's eyes
	heads   []string
	rows    [][]string
}

func (t *table) header(names ...string) { t.heads = names }

func (t *table) row(cells ...string) { t.rows = append(t.rows, cells) }

func (t *table) write(w io.Writer) {
	width := make([]int, len(t.heads))
	right := make([]bool, len(t.heads))
	for i, head := range t.heads {
		width[i] = utf8.RuneCountInString(head)
		right[i] = len(t.rows) > 0
		for _, row := range t.rows {
			if t.grouped {
				row[i] = groupThousands(row[i])
			}
			width[i] = max(width[i], utf8.RuneCountInString(row[i]))
			right[i] = right[i] && (row[i] == "" || row[i] == "NULL" || isNumber(row[i]))
		}
	}
	var b strings.Builder
	line := func(cells []string) {
		for i, cell := range cells {
			space := strings.Repeat(" ", width[i]-utf8.RuneCountInString(cell))
			if right[i] {
				cell, space = space+cell, ""
			}
			if i > 0 {
				b.WriteString(" |")
			}
			b.WriteString(" " + cell)
			if i < len(cells)-1 {
				b.WriteString(space) // no blanks at the end of a line
			}
		}
		b.WriteByte('\n')
	}
	line(t.heads)
	for i, n := range width {
		if i > 0 {
			b.WriteByte('+')
		}
		b.WriteString(strings.Repeat("-", n+2))
	}
	b.WriteByte('\n')
	for _, row := range t.rows {
		line(row)
	}
	_, _ = io.WriteString(w, b.String()) // a closed terminal is nobody's error
}

// isNumber reports whether a cell holds a decimal number, with or without separators.
func isNumber(cell string) bool {
	_, ok := new(big.Rat).SetString(strings.ReplaceAll(cell, ",", ""))
	return ok && !strings.ContainsAny(cell, "/_xXoObB")
}

// groupThousands separates the thousands of a plain number; everything else is left alone.
func groupThousands(cell string) string {
	if !isNumber(cell) || strings.ContainsAny(cell, "eE,") {
		return cell
	}
	whole, fraction, _ := strings.Cut(cell, ".")
	sign := ""
	if rest, negative := strings.CutPrefix(whole, "-"); negative {
		sign, whole = "-", rest
	}
	for i := len(whole) - 3; i > 0; i -= 3 {
		whole = whole[:i] + "," + whole[i:]
	}
	if fraction != "" {
		whole += "." + fraction
	}
	return sign + whole
}

// shorten rounds a decimal to as many places as its column has for all rows: what noise has drowned is not worth reading.
// Anything that is not a number is left alone.
func shorten(value string, places *int, to rounding) string {
	v, ok := new(big.Rat).SetString(value)
	if !ok || !isNumber(value) || places == nil {
		return value
	}
	return to.text(v, min(max(*places, 0), maxPlaces))
}

// text is a number with so many decimal places. There is no -0.
func (r rounding) text(x *big.Rat, places int) string {
	unit := new(big.Rat).SetInt(new(big.Int).Exp(big.NewInt(10), big.NewInt(int64(places)), nil))
	scaled := new(big.Rat).Mul(x, unit)
	switch r {
	case up:
		scaled.SetInt(exact.Ceil(scaled))
	case down:
		scaled.SetInt(exact.FloorQuo(scaled.Num(), scaled.Denom()))
	case nearest: // as FloatString does
	}
	text := scaled.Quo(scaled, unit).FloatString(places)
	if strings.Trim(text, "-0.") == "" {
		return strings.TrimPrefix(text, "-")
	}
	return text
}

// figure is a number with four digits.
func (r rounding) figure(x float64) string {
	shown, _ := strconv.ParseFloat(strconv.FormatFloat(x, 'e', 3, 64), 64)
	_, power, _ := strings.Cut(strconv.FormatFloat(x, 'e', -1, 64), "e")
	exponent, _ := strconv.Atoi(power)
	switch step := math.Pow10(exponent - 3); {
	case r == down && shown > x:
		shown -= step
	case r == up && shown < x:
		shown += step
	}
	return strconv.FormatFloat(shown, 'g', 4, 64)
}

// interval shows two ends, which are rounded away from each other.
func interval(ends [2]float64) string { return down.figure(ends[0]) + " to " + up.figure(ends[1]) }

// maxPlaces are the decimal places that are shown at most.
const maxPlaces = 12

// placesFor is the number of decimal places that show two significant digits of x.
func placesFor(x *big.Rat) int {
	if x.Sign() <= 0 {
		return maxPlaces
	}
	ten := big.NewRat(10, 1)
	places := 0
	for scaled := new(big.Rat).Set(x); places < maxPlaces && scaled.Cmp(ten) < 0; places++ {
		scaled.Mul(scaled, ten)
	}
	return places
}

// percent writes a level of confidence: 0.95 as "95 %".
func percent(level float64) string { return fmt.Sprintf("%.6g %%", level*100) }
