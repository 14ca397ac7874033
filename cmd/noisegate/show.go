package main

import (
	"fmt"
	"math/big"
	"strings"
	"time"

	"noisegate.example/api"
)

// showAnswer prints an answer for people: each value with its uncertainty, what it cost and what is left.
func (a *app) showAnswer(answer *api.QueryResponse, confidence float64) error {
	t := newAnswerTable(answer.Result, confidence)
	t.grouped = a.terminal
	if useful := answer.Useful.Text(); useful != "" {
		fmt.Fprintf(a.Out, " %s\n", useful)
	}
	t.write(a.Out)
	a.showNotes(answer.Notes)
	fmt.Fprintf(a.Out, " %s\n", spendLine(answer))
	if n := answer.Newer; n != nil && n.Price != nil {
		short := ""
		if n.Affordable != nil && !*n.Affordable { // an older gateway does not say
			short = ", which is more than is left"
		}
		fmt.Fprintf(a.Out, " there are rows of %s: --latest asks them, for %s%s\n", n.AsOf.UTC().Format(time.RFC3339),
			priceText(*n.Price, answer.Remaining), short)
	}
	return nil
}

// spendLine is the last line under an answer.
func spendLine(answer *api.QueryResponse) string {
	if answer.Replayed {
		return fmt.Sprintf("replay of %s%s: nothing spent (%s left)", answer.ReleaseID, ageText(answer), amountsText(answer.Remaining, down))
	}
	if answer.ReleaseID == "" { // nothing was released: public rows, or the names of columns
		return fmt.Sprintf("free: no private row was read (%s left)", amountsText(answer.Remaining, down))
	}
	left := down.shorten(answer.Remaining.Epsilon)
	if !inEpsilon(answer.Spent) || !inEpsilon(answer.Remaining) {
		left = amountsText(inCurrencyOf(answer.Spent, answer.Remaining), down)
	}
	return fmt.Sprintf("spent %s (%s left) · %s · ask again: same answer, free", priceText(answer.Spent, answer.Remaining), left,
		answer.ReleaseID)
}

// ageText says of a replay when its values were released, and the state of the data then.
func ageText(answer *api.QueryResponse) string {
	if answer.ReleasedAt == nil {
		return ""
	}
	text := ", released " + answer.ReleasedAt.UTC().Format(time.DateOnly)
	if answer.DataVersion != "" {
		text += ", data_version " + answer.DataVersion
	}
	return text
}

func (a *app) showNotes(notes []api.Note) {
	for _, note := range notes {
		fmt.Fprintf(a.Out, " note: %s\n", note.Text)
	}
}

// answerTable is a table whose columns follow an answer's: behind a value stands its uncertainty.
type answerTable struct {
	table
	columns []answerColumn
}

// answerColumn says how one output column is shown.
type answerColumn struct {
	halfWidth *big.Rat // the same for every row: shown as ±
	interval  bool     // differs from row to row: shown as its two ends
	places    *int     // that its numbers are shown with; nil: all that they have
	low       bool     // rows of a unit may be left out: shown as a lower end
}

func newAnswerTable(result api.Result, confidence float64) *answerTable {
	t := &answerTable{}
	var heads []string
	for i, column := range result.Columns {
		heads = append(heads, column.Name)
		c := answerColumn{low: column.Bias == "low", places: column.Digits}
		if half, ok := new(big.Rat).SetString(column.HalfWidth.String()); ok {
			if c.halfWidth = half; c.places == nil && !strings.Contains(column.Type, "int") { // of an answer from before columns said it
				c.places = new(placesFor(half))
			}
			heads = append(heads, "± "+percent(confidence))
		} else if hasIntervals(result, i) {
			c.interval = true
			heads = append(heads, percent(confidence)+" interval")
		}
		t.columns = append(t.columns, c)
	}
	t.header(heads...)
	for i, row := range result.Rows {
		t.row(t.cells(row, intervalsOf(result, i))...)
	}
	return t
}

// cells renders one row of an answer.
func (t *answerTable) cells(row []api.Value, intervals []*api.Bounds) []string {
	var cells []string
	for i, value := range row {
		text := value.String()
		if value.IsNull() {
			text = "NULL"
		}
		c, mark := t.columns[i], ""
		if c.low && !value.IsNull() {
			mark = ">= "
		}
		switch {
		case c.halfWidth != nil:
			cells = append(cells, mark+shorten(text, c.places, nearest), roundUp(c.halfWidth))
		case c.interval && i < len(intervals) && intervals[i] != nil:
			lo, hi := intervals[i][0].String(), intervals[i][1].String()
			cells = append(cells, mark+shorten(text, c.places, nearest), shorten(lo, c.places, down)+" to "+shorten(hi, c.places, up))
		case c.interval:
			cells = append(cells, text, "")
		default:
			cells = append(cells, text)
		}
	}
	return cells
}

func hasIntervals(result api.Result, column int) bool {
	for i := range result.Rows {
		if intervals := intervalsOf(result, i); column < len(intervals) && intervals[column] != nil {
			return true
		}
	}
	return false
}

func intervalsOf(result api.Result, row int) []*api.Bounds {
	if row < len(result.Intervals) {
		return result.Intervals[row]
	}
	return nil
}

// roundUp shows a half-width with two significant digits of its fraction at most; never less than it is.
func roundUp(half *big.Rat) string {
	if half.IsInt() {
		return half.Num().String()
	}
	return up.text(half, placesFor(half))
}

// showEstimate prints what a question would cost and how exact its answer would be.
func (a *app) showEstimate(e *api.EstimateResponse) error {
	t := &table{grouped: a.terminal}
	t.header("output", "mechanism", "± "+percent(e.Confidence), "price", "bound")
	for _, o := range e.Outputs {
		half := ""
		if h, ok := new(big.Rat).SetString(o.HalfWidth.String()); ok {
			half = roundUp(h)
		} else if o.RankError != "" {
			half = string(o.RankError) + " rows"
		}
		mechanism := o.Mechanism
		if o.Selection != "" && o.Selection != mechanism {
			mechanism += " by " + o.Selection
		}
		t.row(o.Name, mechanism, half, amountsText(o.Price, up), o.Bound)
	}
	t.write(a.Out)
	for _, o := range e.Outputs {
		for _, s := range o.ShownAt {
			fmt.Fprintf(a.Out, " %s: a group of %d is shown with probability %s\n", o.Name, s.Units, percent(s.Probability))
		}
	}
	if e.Useful != nil {
		fmt.Fprintf(a.Out, " %s\n", e.Useful.Text())
	}
	a.showNotes(e.Notes)
	for _, line := range strings.Split(strings.TrimRight(e.Plan, "\n"), "\n") {
		fmt.Fprintf(a.Out, "   %s\n", line)
	}
	verdict := "affordable"
	if !e.Affordable {
		verdict = "more than is left"
	}
	fmt.Fprintf(a.Out, " price %s: %s (%s left) · nothing was spent\n", priceText(e.Price, e.Remaining), verdict,
		amountsText(inCurrencyOf(e.Price, e.Remaining), down))
	return nil
}
