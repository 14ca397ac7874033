package sqlrewrite

import (
	"errors"
	"maps"
	"math/rand/v2"
	"regexp"
	"slices"
	"strings"
	"testing"

	"noisegate.example/internal/fault"
	"noisegate.example/internal/randomtest"
	"noisegate.example/sqlrewrite/internal/rewritetest"
	"noisegate.example/sqlrewrite/internal/scalar"
	"noisegate.example/sqlrewrite/internal/steps"
)

// TestSuggestionsQuoteNames: where tables and columns have names that SQL wants in quotes, the same suggestions are given as without, and
// each is accepted.
func TestSuggestionsQuoteNames(t *testing.T) {
	if testing.Short() {
		t.Skip("-short: this takes long")
	}
	names := strings.Fields("people visits items bills rides id sex city age income height born seen visit ward region minutes at price " +
		"cost ride bike km")
	words := strings.Fields("user order table group all any array case check desc distinct else end for from grant having in into like " +
		"limit not offset")
	styles := map[string]func(i int, name string) string{
		"plain":      func(_ int, name string) string { return name },
		"mixed case": func(_ int, name string) string { return strings.ToUpper(name[:1]) + name[1:] },
		"reserved":   func(i int, _ string) string { return words[i] },
		"non-ASCII":  func(_ int, name string) string { return name + "Äß" },
		"a quote":    func(_ int, name string) string { return name + `"x` },
	}
	word := regexp.MustCompile(`'[^']*'|\w+`)
	renamed := func(text string, change func(i int, name string) string, write func(...string) string) string {
		return word.ReplaceAllStringFunc(text, func(w string) string {
			if i := slices.Index(names, w); i >= 0 {
				return write(change(i, w))
			}
			return w
		})
	}
	ctx, random := steps.WithoutClock(t.Context()), rand.New(rand.NewPCG(3, 29))
	one := func(of ...string) string { return of[random.IntN(len(of))] }
	texts := map[string]bool{} // whether a name in it is misspelled, which need not be near to every other name
	for _, form := range refusedForms() {
		for range randomtest.Part(1, 2) {
			texts[form.text(one)] = form.name == "names and keys"
		}
	}
	for _, text := range []string{"SELECT avg(ages) FROM people", "SELECT count(*) FROM peoples", "SELECT count(*) FROM public.visitss",
		"SELECT sum(v.minute) FROM visits v", "SELECT sex, count(*) FROM people WHERE sex = m GROUP BY sex"} {
		texts[text] = true
	}
	o := rewritetest.Sharp()
	o.Delta, o.Now = 1, rewritetest.GoldenNow()
	plain := map[string]bool{}
	for _, style := range []string{"plain", "mixed case", "reserved", "non-ASCII", "a quote"} {
		bare := func(of ...string) string { return strings.Join(of, ".") }
		inPolicy := func(of ...string) string { return "'" + strings.Join(of, ".") + "'" }
		change := styles[style]
		snapshot := rewritetest.ParseSnapshot(t, renamed(suggestionTables, change, bare), renamed(suggestionPolicy, change, inPolicy))
		given := 0
		for _, plainText := range slices.Sorted(maps.Keys(texts)) {
			text := renamed(plainText, change, scalar.NameText)
			_, _, err := Read(ctx, text, snapshot, o)
			var refusal *fault.Error
			if err == nil || !errors.As(Suggest(ctx, err, text, snapshot, o), &refusal) {
				t.Errorf("%s: %v", text, err)
				continue
			}
			suggested := ""
			for _, d := range refusal.Details {
				if d.Name == "suggestion" {
					suggested = d.Value
				}
			}
			if style == "plain" {
				plain[plainText] = suggested != ""
			}
			if plain[plainText] != (suggested != "") && (style == "mixed case" || !texts[plainText]) {
				t.Errorf("%s: %s\n%v\nsuggests %q", style, text, refusal, suggested)
			}
			if suggested == "" {
				continue
			}
			given++
			if _, _, err := Read(ctx, suggested, snapshot, o); err != nil {
				t.Errorf("%s suggests %s: %v", text, suggested, err)
			}
		}
		t.Logf("%s: %d of %d are given a suggestion", style, given, len(texts))
	}
}
