package pgexec_test

import (
	"errors"
	"strconv"
	"testing"

	"noisegate.example/internal/fault"
	"noisegate.example/internal/pgtest"
	"noisegate.example/sqlrewrite"
)

// script is a series of given statements.
type script struct {
	statements []sqlrewrite.Statement
	after      func(done int, row sqlrewrite.ExactRow) error
	done       int
}

func (s *script) Next() (sqlrewrite.Statement, bool) {
	if s.done == len(s.statements) {
		return sqlrewrite.Statement{}, false
	}
	return s.statements[s.done], true
}

func (s *script) Len() int { return len(s.statements) }

func (s *script) Release(row sqlrewrite.ExactRow) error {
	s.done++
	return s.after(s.done, row)
}

// A series sees one snapshot, whatever is written while it runs; each statement takes the arguments that are made of the row before.
func TestSequenceRunsOnOneSnapshot(t *testing.T) {
	p := pgtest.Protected(t, ddl)
	d := open(t, p, nil)
	count := sqlrewrite.Statement{SQL: "SELECT (count(*) + $1::bigint)::text FROM public.people", Args: []any{int64(0)}, Values: 1,
		Preconditions: pins(t, d, "people", "age")}
	s := &script{statements: []sqlrewrite.Statement{count, count, count}}
	var seen []string
	s.after = func(done int, row sqlrewrite.ExactRow) error {
		seen = append(seen, revealed(t, row.Values[0]))
		p.Exec(t, "INSERT INTO people SELECT max(id) + 1 FROM people")
		if done < len(s.statements) {
			s.statements[done].Args = []any{int64(done)}
		}
		return nil
	}
	if err := d.Sequence(t.Context(), s); err != nil {
		t.Fatal(err)
	}
	if len(seen) != 3 || seen[0] != "100" || seen[1] != "101" || seen[2] != "102" {
		t.Errorf("%v", seen)
	}
	if rows, err := collect(t, d, count); err != nil || revealed(t, rows[0].Values[0]) != "103" {
		t.Errorf("afterwards: %v", err)
	}
}

// Before the first statement nothing was touched; from then on an error keeps the charge, whatever ends the series, and the connection is
// of use again.
func TestSequenceErrors(t *testing.T) {
	p := pgtest.Protected(t, ddl)
	d := open(t, p, nil)
	fine := sqlrewrite.Statement{SQL: "SELECT count(*)::text FROM public.people", Values: 1, Preconditions: pins(t, d, "people", "age")}
	change := func(edit func(*sqlrewrite.Statement)) sqlrewrite.Statement {
		other := fine
		edit(&other)
		return other
	}
	stale := change(func(s *sqlrewrite.Statement) {
		s.Preconditions = pins(t, d, "people", "age")
		s.Preconditions[0].Columns[0].TypeOID++
	})
	broken := change(func(s *sqlrewrite.Statement) { s.SQL = "SELECT (1 / 0)::text" })
	none := change(func(s *sqlrewrite.Statement) { s.SQL += " HAVING false" })
	two := change(func(s *sqlrewrite.Statement) { s.SQL += " GROUP BY id % 2" })
	wide := change(func(s *sqlrewrite.Statement) { s.Values = 2 })
	for name, c := range map[string]struct {
		statements []sqlrewrite.Statement
		untouched  bool
		code       fault.Code
	}{
		"a table that changed":    {[]sqlrewrite.Statement{stale}, true, fault.CodePolicyStale},
		"another table, later":    {[]sqlrewrite.Statement{fine, stale}, false, fault.CodeInternal},
		"an error, later":         {[]sqlrewrite.Statement{fine, broken}, false, fault.CodeDataUnavailable},
		"no row":                  {[]sqlrewrite.Statement{none}, false, fault.CodeInternal},
		"two rows":                {[]sqlrewrite.Statement{two}, false, fault.CodeInternal},
		"columns of another kind": {[]sqlrewrite.Statement{wide}, false, fault.CodeDataUnavailable},
	} {
		s := &script{statements: c.statements, after: func(int, sqlrewrite.ExactRow) error { return nil }}
		err := d.Sequence(t.Context(), s)
		if fault.CodeOf(err) != c.code || fault.IsUntouched(err) != c.untouched {
			t.Errorf("%s: %v, untouched %v", name, err, fault.IsUntouched(err))
		}
	}
	own := errors.New("enough")
	s := &script{statements: []sqlrewrite.Statement{fine, fine}, after: func(int, sqlrewrite.ExactRow) error { return own }}
	if err := d.Sequence(t.Context(), s); !errors.Is(err, own) || fault.IsUntouched(err) || s.done != 1 {
		t.Errorf("an error of the series: %v after %d", err, s.done)
	}
	if err := d.Sequence(t.Context(), &script{}); err != nil {
		t.Errorf("nothing: %v", err)
	}
	if _, err := collect(t, d, fine); err != nil {
		t.Error(err)
	}
}

// A statement that waits for what others release runs on their snapshot, with their rows. Once a statement before it was sent, no error
// says that nothing was touched.
func TestStatementsThatWait(t *testing.T) {
	p := pgtest.Protected(t, ddl)
	d := open(t, p, nil)
	count := sqlrewrite.Statement{SQL: "SELECT (count(*) + $1::bigint)::text FROM public.people", Args: []any{int64(0)}, Values: 1,
		Preconditions: pins(t, d, "people", "age")}
	change := func(edit func(*sqlrewrite.Statement)) sqlrewrite.Statement {
		other := count
		edit(&other)
		return other
	}
	own := errors.New("no value")
	var seen []string
	waits := func(s sqlrewrite.Statement, err error) sqlrewrite.Statement {
		s.Bought = func() (sqlrewrite.Statement, error) {
			p.Exec(t, "INSERT INTO people SELECT max(id) + 1 FROM people")
			s.Args, s.Bought = []any{int64(1000 * len(seen))}, nil
			return s, err
		}
		return s
	}
	broken := change(func(s *sqlrewrite.Statement) { s.SQL = "SELECT (1 / 0 + $1::bigint)::text" })
	inTokyo := change(func(s *sqlrewrite.Statement) { s.Zones = []string{"Asia/Tokyo"} })
	wrong := change(func(s *sqlrewrite.Statement) { s.SQL = "SELECT nosuch + $1::bigint FROM public.people" })
	for name, c := range map[string]struct {
		statements     []sqlrewrite.Statement
		fails, excused bool
		untouched      bool
		rows           int
	}{
		"two":                   {[]sqlrewrite.Statement{count, waits(count, nil)}, false, false, false, 2},
		"three":                 {[]sqlrewrite.Statement{count, waits(count, nil), waits(count, nil)}, false, false, false, 3},
		"given before":          {[]sqlrewrite.Statement{waits(count, nil)}, false, false, false, 1},
		"an error, later":       {[]sqlrewrite.Statement{count, waits(broken, nil)}, true, false, false, 1},
		"not taken, later":      {[]sqlrewrite.Statement{count, waits(wrong, nil)}, true, true, false, 1},
		"no value":              {[]sqlrewrite.Statement{count, waits(count, own)}, true, true, false, 1},
		"unproven, later":       {[]sqlrewrite.Statement{count, waits(count, fault.Unverified(own))}, true, true, false, 1},
		"no value, given":       {[]sqlrewrite.Statement{waits(count, own)}, true, false, true, 0},
		"no value, with a zone": {[]sqlrewrite.Statement{waits(inTokyo, own)}, true, false, true, 0},
		"given, with a zone":    {[]sqlrewrite.Statement{waits(inTokyo, nil)}, false, false, false, 1},
		"not taken, in front":   {[]sqlrewrite.Statement{wrong, waits(count, nil)}, true, false, true, 0},
	} {
		var err error
		seen = nil
		start := 0
		for row, failed := range d.Run(t.Context(), c.statements...) {
			if err = failed; err == nil {
				seen = append(seen, revealed(t, row.Values[0]))
			}
		}
		if len(seen) > 0 {
			start, _ = strconv.Atoi(seen[0])
		}
		for i, text := range seen {
			if n, _ := strconv.Atoi(text); n != start+1000*i {
				t.Errorf("%s: %v", name, seen)
			}
		}
		if len(seen) > 0 && fault.CodeOf(err) == fault.CodeUnverified {
			t.Errorf("%s: %v, though a statement ran and is paid", name, err)
		}
		if (err != nil) != c.fails || fault.IsUntouched(err) != c.untouched || fault.IsExcused(err) != c.excused || len(seen) != c.rows {
			t.Errorf("%s: %v, untouched %v, excused %v, %v", name, err, fault.IsUntouched(err), fault.IsExcused(err), seen)
		}
	}
	if _, err := collect(t, d, count); err != nil {
		t.Error(err)
	}
}
