package gen

import (
	"context"
	"errors"
	"testing"

	"github.com/jackc/pgx/v5"

	"noisegate.example/catalog"
	"noisegate.example/sqlrewrite/internal/algebra"
	lists "noisegate.example/sqlrewrite/internal/keys"
	"noisegate.example/sqlrewrite/internal/pipeline"
	"noisegate.example/sqlrewrite/internal/plan"
	"noisegate.example/sqlrewrite/internal/sqlprint"
)

// Lists answers what plans ask of a database about their keys, as the gateway does, and remembers it.
type Lists struct {
	on    *pgx.Conn
	known map[lists.Name]lists.Tuples
}

// NewLists remembers nothing yet.
func NewLists(on *pgx.Conn) *Lists { return &Lists{on, make(map[lists.Name]lists.Tuples)} }

// Plan is [pipeline.Rewrite] with the lists that a query needs.
func (l *Lists) Plan(sql string, snapshot *catalog.Snapshot, o plan.Options) (*plan.Plan, error) {
	return l.with(o, func(o plan.Options) (*plan.Plan, error) { return pipeline.Rewrite(sql, snapshot, o) })
}

// Read is [pipeline.Read] with the lists that a query needs; nil where it reads public tables alone.
func (l *Lists) Read(sql string, snapshot *catalog.Snapshot, o plan.Options) (*plan.Plan, error) {
	return l.with(o, func(o plan.Options) (*plan.Plan, error) {
		private, _, err := pipeline.Read(sql, snapshot, o)
		return private, err
	})
}

func (l *Lists) with(o plan.Options, planned func(plan.Options) (*plan.Plan, error)) (*plan.Plan, error) {
	o.Lists = &lists.Lists{Known: l.known}
	for {
		p, err := planned(o)
		var needed *lists.Needed
		if !errors.As(err, &needed) {
			return p, err
		}
		for _, q := range needed.Questions {
			if l.known[q.Name], err = l.ask(q.Post()); err != nil {
				return nil, err
			}
		}
	}
}

// Now answers a list while a query is bound.
func (l *Lists) Now(t *testing.T, on *catalog.Snapshot) algebra.List {
	return algebra.List{Of: func(q algebra.KeyList) ([][]catalog.Key, bool) {
		asked := lists.NewAsked(&lists.Lists{Known: l.known}, on)
		if tuples, known := asked.List(q); known {
			return tuples, true
		}
		var needed *lists.Needed
		errors.As(asked.Needed(), &needed)
		tuples, err := l.ask(needed.Questions[0].Post())
		if err != nil {
			post := needed.Questions[0].Post()
			t.Fatalf("%s\n%v: %v", post.SQL(), post.Args(), err)
		}
		l.known[needed.Questions[0].Name] = tuples
		return tuples, true
	}}
}

// ask gives the tuples of a list.
func (l *Lists) ask(post sqlprint.Post) (lists.Tuples, error) {
	if err := post.Prove(nil); err != nil {
		return nil, err
	}
	rows, err := l.on.Query(context.Background(), post.SQL(), append([]any{pgx.QueryExecModeDescribeExec}, post.Args()...)...)
	if err != nil {
		return nil, err
	}
	defer rows.Close()
	tuples := lists.Tuples{}
	for rows.Next() {
		raw := rows.RawValues()
		tuple := make([]catalog.Key, len(raw)-1) // without the ordinal
		for i := range tuple {
			tuple[i] = catalog.Key{Text: string(raw[i]), Null: raw[i] == nil}
		}
		tuples = append(tuples, tuple)
	}
	return tuples, rows.Err()
}
