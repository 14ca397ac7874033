package gen

import (
	"fmt"
	"maps"
	"math"
	"math/big"
	"slices"
	"strings"
	"testing"

	"github.com/jackc/pgx/v5"

	"noisegate.example/catalog"
	"noisegate.example/mechanisms"
	"noisegate.example/sqlrewrite/internal/answer"
	"noisegate.example/sqlrewrite/internal/pipeline"
	"noisegate.example/sqlrewrite/internal/plan"
	"noisegate.example/sqlrewrite/internal/rewritetest"
	"noisegate.example/sqlrewrite/internal/scalar"
	"noisegate.example/sqlrewrite/internal/sqlprint"
	"noisegate.example/sqlrewrite/internal/stability"
)

// AnswerText is an answer as text, with the types of its columns.
type AnswerText struct {
	Types []string
	Rows  [][]string
}

// PlainAnswer runs the analyst's text as it is.
func PlainAnswer(t *testing.T, conn *pgx.Conn, sql string) AnswerText {
	t.Helper()
	rows, err := conn.Query(t.Context(), sql, pgx.QueryResultFormats{pgx.TextFormatCode})
	if err != nil {
		t.Fatalf("%s: %v", sql, err)
	}
	defer rows.Close()
	var a AnswerText
	for _, f := range rows.FieldDescriptions() {
		a.Types = append(a.Types, PGTypeName(t, conn, f.DataTypeOID))
	}
	for rows.Next() {
		a.Rows = append(a.Rows, rawTexts(rows.RawValues(), a.Types))
	}
	if rows.Err() != nil {
		t.Fatalf("%s: %v", sql, rows.Err())
	}
	return a
}

// NoiselessAnswer runs a plan's statement and post-processing query with the true values in place of noisy ones.
func NoiselessAnswer(t *testing.T, conn *pgx.Conn, p *plan.Plan) AnswerText {
	t.Helper()
	released := noiselessRelease(t, conn, p)
	var rows []answer.PostRow
	var types []string
	if post, ok := released.Post(); ok {
		rows, types = RunPost(t, conn, post)
	}
	answer, err := answer.Complete(released, rows, types)
	if err != nil {
		t.Fatal(err)
	}
	var a AnswerText
	for _, c := range answer.Columns {
		a.Types = append(a.Types, strings.Replace(c.Type, "character", "text", 1))
	}
	for _, row := range answer.Rows {
		var texts []string
		for _, k := range row {
			texts = append(texts, NullText(k))
		}
		a.Rows = append(a.Rows, texts)
	}
	return a
}

// noiselessRelease returns all blocks that a plan would release without noise.
func noiselessRelease(t *testing.T, conn *pgx.Conn, p *plan.Plan) *plan.Released {
	t.Helper()
	if !(p.Several != nil) {
		return &plan.Released{Plan: p, Rows: noiselessRows(t, conn, p)}
	}
	var blocks []*plan.Released
	for _, block := range p.Different() {
		blocks = append(blocks, noiselessRelease(t, conn, block))
	}
	whole, err := pipeline.Whole(p.Given(blocks))
	if err != nil {
		t.Fatal(err)
	}
	return whole
}

// noiselessRows runs the statements of a plan and gives what its releases would be without noise.
func noiselessRows(t *testing.T, conn *pgx.Conn, p *plan.Plan) []plan.ReleasedRow {
	t.Helper()
	groups := make(map[string]*plan.Group)
	noisy := make(map[string][]*big.Int)
	of := func(keys []catalog.Key) string {
		id := scalar.KeyIdentity(keys)
		if groups[id] == nil {
			groups[id], noisy[id] = p.NewGroup(keys), make([]*big.Int, len(p.Releases))
			for i := range noisy[id] {
				noisy[id][i] = new(big.Int)
			}
		}
		return id
	}
	for at, s := range p.Statements(&plan.Draws{}) {
		part, histogram := p.Parts[at], p.Parts[at].Histogram(p.Query)
		if histogram {
			s = AsCells(s)
		}
		exact, err := ExactRows(t, conn, s)
		if err != nil {
			t.Fatalf("%s: %v", s.SQL, err)
		}
		for id, values := range exact {
			keys := ParseIdentity(t, id)
			if histogram {
				point, _ := new(big.Int).SetString(keys[len(keys)-1].Text, 10)
				g := groups[of(keys[:len(keys)-1])]
				g.Tallies[at] = append(g.Tallies[at], mechanisms.Tally{Point: mechanisms.Seal(point), Rows: mechanisms.Seal(values[0])})
				continue
			}
			group := of(keys)
			for i, release := range part.Releases {
				noisy[group][release] = values[i]
			}
		}
	}
	var rows []plan.ReleasedRow
	add := func(keys []catalog.Key) {
		id := of(keys)
		for at, part := range p.Parts {
			for _, i := range part.Releases {
				if r := p.Releases[i]; r.Selection != nil {
					noisy[id][i] = sharpSelection(t, r).Choose(rewritetest.FixedSampler(t), groups[id].Tallies[at])
				}
			}
		}
		rows = append(rows, plan.ReleasedRow{Keys: keys, Noisy: noisy[id]})
	}
	if p.Query.Top > 0 {
		_ = plan.EachPublicTuple(p.Query, func(_ int, keys []catalog.Key) error {
			rows = append(rows, plan.ReleasedRow{Keys: keys, Noisy: noisy[of(keys)]})
			return nil
		})
		slices.SortStableFunc(rows, func(a, b plan.ReleasedRow) int { return b.Noisy[0].Cmp(a.Noisy[0]) })
		return rows[:p.Query.Top]
	}
	if !p.Query.Private() {
		_ = plan.EachPublicTuple(p.Query, func(_ int, keys []catalog.Key) error { add(keys); return nil })
		return rows
	}
	for _, g := range slices.SortedFunc(maps.Values(groups), func(a, b *plan.Group) int {
		return plan.CompareKeys(p.Query, a.Keys, b.Keys)
	}) {
		add(g.Keys)
	}
	return rows
}

// AsCells reads a histogram's candidates as keys, so that each row is one number.
func AsCells(s sqlprint.Statement) sqlprint.Statement {
	s.Keys, s.Values = s.Keys+1, 1
	return s
}

// sharpSelection is a release's selection at a price at which it makes no mistake.
func sharpSelection(t *testing.T, r plan.Release) *plan.Selection {
	t.Helper()
	r.PerGroup = big.NewInt(1)
	p := &plan.Plan{Bounding: stability.Bounding{MaxGroups: 1}}
	sharp, err := p.NewSelection(r, plan.Portion{Epsilon: mechanisms.MaxEpsilon})
	if err != nil {
		t.Fatal(err)
	}
	return sharp
}

// NullText is a key as text.
func NullText(k catalog.Key) string {
	if k.Null {
		return "NULL"
	}
	return k.Text
}

// RunPost runs an post-processing query as gateway/pgexec does.
func RunPost(t *testing.T, conn *pgx.Conn, post sqlprint.Post) ([]answer.PostRow, []string) {
	t.Helper()
	rows, err := conn.Query(t.Context(), post.SQL(), append([]any{pgx.QueryResultFormats{pgx.TextFormatCode}}, post.Args()...)...)
	if err != nil {
		t.Fatalf("%s: %v", post.SQL(), err)
	}
	defer rows.Close()
	var types []string
	for _, f := range rows.FieldDescriptions() {
		types = append(types, PGTypeName(t, conn, f.DataTypeOID))
	}
	types = types[:len(types)-1]
	var out []answer.PostRow
	for rows.Next() {
		raw := rows.RawValues()
		texts := rawTexts(raw[:len(types)], types)
		row := answer.PostRow{}
		for i, text := range texts {
			row.Values = append(row.Values, catalog.Key{Text: text, Null: raw[i] == nil})
		}
		if raw[len(types)] != nil {
			if _, err := fmt.Sscan(string(raw[len(types)]), &row.Ordinal); err != nil {
				t.Fatal(err)
			}
		}
		out = append(out, row)
	}
	if rows.Err() != nil {
		t.Fatalf("%s: %v", post.SQL(), rows.Err())
	}
	return out, types
}

func rawTexts(raw [][]byte, types []string) []string {
	texts := make([]string, len(raw))
	for i, v := range raw {
		switch {
		case v == nil:
			texts[i] = "NULL"
		case types[i] == "boolean":
			texts[i] = map[string]string{"t": "true", "f": "false"}[string(v)]
		default:
			texts[i] = string(v)
		}
	}
	return texts
}

// PGTypeName is PostgreSQL's name of a type.
func PGTypeName(t *testing.T, conn *pgx.Conn, oid uint32) string {
	t.Helper()
	names := map[uint32]string{16: "boolean", 20: "bigint", 21: "smallint", 23: "integer", 25: "text", 700: "real", 701: "double precision",
		1082: "date", 1083: "time without time zone", 1114: "timestamp without time zone", 1184: "timestamp with time zone",
		1186: "interval", 1700: "numeric", 1022: "double precision[]", 1231: "numeric[]", 1007: "integer[]", 1016: "bigint[]", 1009: "text[]",
		1042: "text", 1043: "text"} // character: an answer does not say which of its texts are
	name, ok := names[oid]
	if !ok {
		t.Fatalf("type %d", oid)
	}
	return name
}

// ParseIdentity is the inverse of scalar.KeyIdentity.
func ParseIdentity(t *testing.T, id string) (keys []catalog.Key) {
	t.Helper()
	for id != "" {
		if rest, null := strings.CutPrefix(id, "-,"); null {
			keys, id = append(keys, catalog.Key{Null: true}), rest
			continue
		}
		length, rest, _ := strings.Cut(id, ":")
		var n int
		if _, err := fmt.Sscan(length, &n); err != nil {
			t.Fatal(err)
		}
		keys, id = append(keys, catalog.Key{Text: rest[:n]}), rest[n:]
	}
	return keys
}

// SameValue compares texts, and numbers with a point by value.
func SameValue(a, b string) bool {
	x, okX := new(big.Float).SetString(a)
	y, okY := new(big.Float).SetString(b)
	if !okX || !okY || !strings.Contains(a+b, ".") {
		return a == b
	}
	u, _ := x.Float64()
	v, _ := y.Float64()
	return math.Abs(u-v) <= 1e-9*math.Max(1, math.Abs(u))
}

// ExactRows runs a statement once.
func ExactRows(t testing.TB, conn *pgx.Conn, s sqlprint.Statement) (ExactTable, error) {
	t.Helper()
	rows, err := conn.Query(t.Context(), s.SQL, s.Args...)
	if err != nil {
		return nil, err
	}
	defer rows.Close()
	out := make(ExactTable)
	for rows.Next() {
		if err := out.add(rows.RawValues(), s); err != nil {
			return nil, err
		}
	}
	return out, rows.Err()
}
