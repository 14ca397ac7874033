package suggest_test

import (
	"errors"
	"math/big"
	"regexp"
	"strconv"
	"strings"
	"testing"

	"noisegate.example/catalog"
	"noisegate.example/internal/fault"
	"noisegate.example/mechanisms"
	"noisegate.example/sqlrewrite/internal/pipeline"
	"noisegate.example/sqlrewrite/internal/plan"
	"noisegate.example/sqlrewrite/internal/rewritetest"
)

// asked is a question, the policy that it is asked under, and the options of its request.
type asked struct {
	sql string
	on  *catalog.Snapshot
	o   plan.Options
}

func (q asked) refusal() *fault.Error {
	var refusal *fault.Error
	_, _, err := pipeline.Read(q.sql, q.on, q.o)
	errors.As(err, &refusal)
	return refusal
}

// hinted has the hints that are carried out, each of which names one or several ways out.
var hinted = []struct {
	form *regexp.Regexp
	ways map[string]func(q asked, word string) (asked, bool)
}{
	{regexp.MustCompile(`ask the data's steward to declare .* for (\S+)$`), map[string]func(asked, string) (asked, bool){
		"bounds: [lo, hi]": func(q asked, column string) (asked, bool) { return q.with(column, bounded) },
		"a domain":         func(q asked, column string) (asked, bool) { return q.with(column, listed) },
		"keys: private":    func(q asked, column string) (asked, bool) { return q.with(column, selected) },
	}},
	{regexp.MustCompile(`ask the data's steward to declare (max_rows|max_groups)$`), map[string]func(asked, string) (asked, bool){
		"max_rows": func(q asked, _ string) (asked, bool) {
			return q.bounding(func(t *catalog.Table) { t.MaxRows = 5 }), true
		},
		"max_groups": func(q asked, _ string) (asked, bool) {
			return q.bounding(func(t *catalog.Table) { t.MaxGroups = 5 }), true
		},
	}},
	{regexp.MustCompile(`^add "delta", for example`), map[string]func(asked, string) (asked, bool){"delta": func(q asked, _ string) (asked, bool) {
		q.o.Delta = mechanisms.DeltaUnit / 1_000_000_000
		return q, true
	}}},
	{regexp.MustCompile(`ask for at most (\d+)$`), map[string]func(asked, string) (asked, bool){
		"max_rows ": func(q asked, most string) (_ asked, ok bool) { q.o.MaxRows, ok = number(most); return q, ok },
		"max_groups ": func(q asked, most string) (_ asked, ok bool) {
			q.o.MaxGroups, ok = number(most)
			return q, ok
		},
		"max_rows_total ": func(q asked, most string) (_ asked, ok bool) { q.o.MaxTotal, ok = number(most); return q, ok },
	}},
	{regexp.MustCompile(`offer a larger epsilon or rho$`), map[string]func(asked, string) (asked, bool){"offer": func(q asked, _ string) (asked, bool) {
		q.o.Epsilon, q.o.Rho = 1_000_000*q.o.Epsilon, 1_000_000*q.o.Rho
		return q, true
	}}},
	{regexp.MustCompile(`^leave "selection" out$`), map[string]func(asked, string) (asked, bool){"selection": func(q asked, _ string) (asked, bool) {
		q.o.Selection, q.o.SelectsOnly = "", false
		return q, true
	}}},
}

func number(text string) (int64, bool) {
	n, err := strconv.ParseInt(text, 10, 64)
	return n, err == nil
}

// with gives each exposed column of a name what its policy does not say; false: no policy can say it.
func (q asked) with(column string, say func(*catalog.Table, *catalog.Column) bool) (_ asked, ok bool) {
	q = q.bounding(func(t *catalog.Table) {
		for i, c := range t.Columns {
			if c.Name == column && c.Exposed {
				changed := *c
				ok = say(t, &changed) || ok
				t.Columns[i] = &changed
			}
		}
	})
	return q, ok
}

// bounding changes the policy of each table.
func (q asked) bounding(change func(*catalog.Table)) asked {
	on := *q.on
	on.Tables = nil
	for _, t := range q.on.Tables {
		changed := *t
		changed.Columns = append([]*catalog.Column(nil), t.Columns...)
		if change(&changed); !t.Public && t.Unit.Kind == catalog.RowUnit {
			changed.MaxRows, changed.MaxGroups = t.MaxRows, t.MaxGroups
		}
		on.Tables = append(on.Tables, &changed)
	}
	q.on = &on
	return q
}

func bounded(_ *catalog.Table, c *catalog.Column) bool {
	const days, day = 9000, 86_400_000_000
	hi := map[catalog.Type]int64{catalog.Date: days, catalog.Timestamp: days * day, catalog.Timestamptz: days * day}[c.Type]
	if c.Type.IsNumber() {
		hi = 100
	}
	c.Bounds = &catalog.Bounds{Lo: new(big.Rat), Hi: new(big.Rat).SetInt64(hi)}
	return hi > 0
}

// mayBeKeys reports whether a policy takes the values of a column as keys: equal ones are written in one way, and they tell nobody.
func mayBeKeys(t *catalog.Table, c *catalog.Column) bool {
	return c.Type != catalog.Float4 && c.Type != catalog.Float8 && (c.Type != catalog.Numeric || c.TypMod >= 0) &&
		(t.Unit.Kind == catalog.NoUnit || t.Unit.Kind == catalog.PathUnit || t.Unit.Column != c.Name)
}

func selected(t *catalog.Table, c *catalog.Column) bool {
	c.PrivateKeys = true
	return mayBeKeys(t, c)
}

func listed(t *catalog.Table, c *catalog.Column) bool {
	text := "a"
	switch {
	case c.Type.IsNumber():
		text = "1"
	case c.Type.IsTime():
		text = "2001-01-01"
	case c.Type == catalog.UUID:
		text = "00000000-0000-0000-0000-000000000001"
	}
	if c.Type == catalog.Timestamp || c.Type == catalog.Timestamptz {
		text += " 00:00:00"
	}
	if c.Type == catalog.Timestamptz {
		text += "+00"
	}
	c.Domain = []catalog.Key{{Text: text}}
	return mayBeKeys(t, c)
}

// helps carries out the hint of a refusal, and those of the refusals that are left, in each way that they name: carried is whether there
// was a hint of a known form. It helps if one of the ways gets the question answered, and a policy can say each of them.
func (q asked) helps(refusal *fault.Error, steps int) (helped, carried bool) {
	for _, h := range hinted {
		words := h.form.FindStringSubmatch(refusal.Hint)
		if words == nil {
			continue
		}
		sayable := true
		for name, way := range h.ways {
			if !strings.Contains(refusal.Hint, name) {
				continue
			}
			next, possible := way(q, words[len(words)-1])
			sayable = sayable && possible
			next.o.Delta = max(next.o.Delta, mechanisms.DeltaUnit/1_000_000_000)
			left := next.refusal()
			if left != nil && steps > 0 {
				more, _ := next.helps(left, steps-1)
				helped = helped || more
			}
			helped = helped || left == nil
		}
		return helped && sayable, true
	}
	return false, false
}

// TestHintsHelp carries out the hints of the refusals of the golden files that are lines of a policy or members of a request, and asks
// again: the question is answered then, or refused with such a hint about something else, which is carried out too. What a hint says of
// the text is a suggestion, see TestSuggestionsAreAccepted.
func TestHintsHelp(t *testing.T) {
	carriedOut := 0
	var useless []string
	eachGoldenRefusal(t, rewritetest.GoldenClauses(), func(sql string, snapshot *catalog.Snapshot, o plan.Options, refusal *fault.Error) {
		helped, carried := asked{sql, snapshot, o}.helps(refusal, 2)
		if carried {
			carriedOut++
		}
		if carried && !helped {
			useless = append(useless, sql+"\n"+refusal.Error()+"\nhint: "+refusal.Hint)
		}
	})
	for _, one := range useless {
		t.Errorf("%s\ndoes not help", one)
	}
	if carriedOut < 20 {
		t.Errorf("only %d hints were carried out", carriedOut)
	}
}
