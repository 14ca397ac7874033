package pgwire

import (
	"fmt"
	"reflect"
	"runtime"
	"slices"
	"strings"
	"testing"

	"github.com/jackc/pgx/v5/pgproto3"

	"noisegate.example/gateway/gatewaytest"
	"noisegate.example/gateway/internal/held"
)

// TestLoopsAreRefused: a statement that executes itself, or a cursor that fetches from itself, is refused, alone and in a ring. A stack
// that overflows ends the process.
func TestLoopsAreRefused(t *testing.T) {
	d := opened(t, gatewaytest.Options{}, nil)
	for name, messages := range map[string][]pgproto3.FrontendMessage{
		"EXECUTE":            {&pgproto3.Parse{Name: "a", Query: "EXECUTE a"}, &pgproto3.Bind{PreparedStatement: "a"}, &pgproto3.Execute{}},
		"EXECUTE, described": {&pgproto3.Parse{Name: "a", Query: "EXECUTE a"}, &pgproto3.Describe{ObjectType: 'S', Name: "a"}},
		"EXECUTE in a ring": {&pgproto3.Parse{Name: "a", Query: "EXECUTE b"}, &pgproto3.Parse{Name: "b", Query: "EXECUTE a"},
			&pgproto3.Bind{PreparedStatement: "a"}, &pgproto3.Execute{}},
		"FETCH": {&pgproto3.Parse{Query: "FETCH ALL FROM x"}, &pgproto3.Bind{DestinationPortal: "x"}, &pgproto3.Execute{Portal: "x"}},
		"FETCH, described": {&pgproto3.Parse{Query: "FETCH ALL FROM x"}, &pgproto3.Bind{DestinationPortal: "x"},
			&pgproto3.Describe{ObjectType: 'P', Name: "x"}},
		"FETCH of EXECUTE": {&pgproto3.Parse{Name: "a", Query: "FETCH ALL FROM x"}, &pgproto3.Parse{Query: "EXECUTE a"},
			&pgproto3.Bind{DestinationPortal: "x"}, &pgproto3.Execute{Portal: "x"}},
		"an EXECUTE of SHOW": {&pgproto3.Parse{Name: "a", Query: "SHOW work_mem"}, &pgproto3.Parse{Query: "EXECUTE a"}, &pgproto3.Bind{},
			&pgproto3.Execute{}},
	} {
		r := d.hello(t, map[string]string{"options": "-c noisegate.epsilon=0.1"})
		r.send(append(messages, &pgproto3.Sync{})...)
		story := r.until("ReadyForQuery")
		refused := slices.ContainsFunc(story, func(word string) bool {
			return word == "ErrorResponse ERROR 0A000" || word == "ErrorResponse ERROR 34000"
		})
		if !refused {
			t.Errorf("%s: %v", name, story)
		}
	}
}

// TestValuesAreCountedBeforeTheyAreCopied: a value that a text names many times is refused for what the text would have, before that is
// written.
func TestValuesAreCountedBeforeTheyAreCopied(t *testing.T) {
	d := opened(t, gatewaytest.Options{}, nil)
	r := d.hello(t, map[string]string{"options": "-c noisegate.epsilon=0.1"})
	in := strings.TrimSuffix(strings.Repeat("$1, ", 4000), ", ")
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	r.send(&pgproto3.Parse{Query: "SELECT count(*) FROM people WHERE region IN (" + in + ")"},
		&pgproto3.Bind{Parameters: [][]byte{[]byte(strings.Repeat("x", 900_000))}}, &pgproto3.Sync{})
	story := r.until("ReadyForQuery")
	runtime.ReadMemStats(&after)
	if !slices.Contains(story, "ErrorResponse ERROR 54000") {
		t.Error(story)
	}
	if grown := after.TotalAlloc - before.TotalAlloc; grown > 64<<20 {
		t.Errorf("%d bytes were taken", grown)
	}
}

// TestAnswersWaitForNoSync: what is described again and again goes out before the client asks for it.
func TestAnswersWaitForNoSync(t *testing.T) {
	d := opened(t, gatewaytest.Options{}, nil)
	r := d.hello(t, map[string]string{"options": "-c noisegate.epsilon=0.1"})
	columns := strings.TrimSuffix(strings.Repeat("count(*), ", 50), ", ")
	r.send(&pgproto3.Parse{Name: "a", Query: "SELECT " + columns + " FROM people"})
	for range 200 {
		r.send(&pgproto3.Describe{ObjectType: 'S', Name: "a"})
	}
	for range 100 { // without a Sync, all but what one buffer holds
		r.receive()
	}
}

// TestSearchPathIsKept: a name without a schema stands for the table that the session's path finds, or for none: never for another one.
func TestSearchPathIsKept(t *testing.T) {
	d := opened(t, gatewaytest.Options{}, nil)
	r := d.hello(t, map[string]string{"options": "-c noisegate.epsilon=0.1"})
	for _, c := range []struct{ sql, state string }{
		{"SET search_path = nowhere; SELECT count(*) AS n FROM people", "42P01"},
		{"SET search_path = nowhere; SELECT count(*) AS n FROM public.people", ""},
		{"SET search_path = nowhere, public; SELECT count(*) AS n FROM people", ""},
		{"SET search_path = information_schema; SELECT count(*) FROM tables", "57P03"},
		{"SET search_path = public; ; SHOW work_mem; -- the end", ""},
	} {
		refused := r.query(c.sql)
		if (refused == nil) != (c.state == "") || refused != nil && refused.Code != c.state {
			t.Errorf("%s: %+v", c.sql, refused)
		}
	}
}

// TestWhatASessionKeepsIsBounded: statements, values and answers together.
func TestWhatASessionKeepsIsBounded(t *testing.T) {
	memory := held.New(1 << 30)
	c := &session{memory: memory.Open("ana"), statements: map[string]*prepared{}, portals: map[string]*portal{}}
	p := &portal{name: "a", of: &prepared{}}
	if refused := c.addPortal(p); refused != nil {
		t.Fatal(refused)
	}
	nulls := make([][]value, 1000)
	for i := range nulls {
		nulls[i] = make([]value, 300)
	}
	if c.keep(p, &result{rows: nulls}); memory.Taken() < 300_000*valueBytes {
		t.Errorf("300,000 NULLs count as %d bytes", memory.Taken())
	}
	for i := range 300 {
		s := &prepared{name: strings.Repeat("x", i+1)}
		s.one.Text = strings.Repeat("y", 250_000)
		if refused := c.addStatement(s); refused != nil {
			if i < 150 || refused.state != stateTooLarge {
				t.Errorf("statement %d: %+v", i, refused)
			}
			return
		}
	}
	t.Error("300 statements of 250,000 bytes are kept")
}

// Whatever text or list a client can make long in a statement or a portal counts with at least what it holds: a field that somebody adds
// fails here until it does.
func TestEachLongFieldCounts(t *testing.T) {
	const long = 100_000
	for _, kept := range []interface{ size() int }{&prepared{}, &portal{of: &prepared{}}} {
		before := kept.size()
		fields := reflect.ValueOf(kept).Elem()
		for i := range fields.NumField() {
			name := fields.Type().Field(i).Name
			field := reflect.NewAt(fields.Field(i).Type(), fields.Field(i).Addr().UnsafePointer()).Elem() // it is no exported one
			least := long
			switch field.Kind() {
			case reflect.String:
				field.SetString(strings.Repeat("x", long))
			case reflect.Slice:
				field.Set(reflect.MakeSlice(field.Type(), long, long))
				least = long * int(field.Type().Elem().Size()) / 2 // of a string or a slice, what it points to counts by itself
			default:
				continue
			}
			if grew := kept.size() - before; grew < least {
				t.Errorf("%T: %s of %d elements makes it %d bytes larger, want %d", kept, name, long, grew, least)
			}
			field.SetZero()
		}
	}
}

// TestWhatAnAnalystKeepsIsBounded: of all sessions of one analyst together, whatever others keep; what a session lets go others may keep.
func TestWhatAnAnalystKeepsIsBounded(t *testing.T) {
	memory := held.New(320 << 20)
	full := func(subject string) (*session, *refusal) {
		c := &session{memory: memory.Open(subject), statements: map[string]*prepared{}, portals: map[string]*portal{}}
		for i := range 60 {
			s := &prepared{name: fmt.Sprint(i)}
			s.one.Text = strings.Repeat("y", 1<<20)
			if refused := c.addStatement(s); refused != nil {
				return c, refused
			}
		}
		return c, nil
	}
	var all []*session
	for range 2 {
		c, refused := full("ana")
		if refused != nil {
			t.Fatal(refused)
		}
		all = append(all, c)
	}
	poor, refused := full("ana")
	if refused == nil || refused.state != stateMemory || len(poor.statements) > 41 { // half of all, and 1 MiB of the reserve
		t.Errorf("a third session keeps %d MiB: %+v", len(poor.statements), refused)
	}
	if _, refused := full("bob"); refused != nil {
		t.Errorf("another analyst: %v", refused)
	}
	clear(all[0].statements)
	all[0].memory.Resize(int64(all[0].size()))
	all[1].memory.Close()
	if _, refused := full("ana"); refused != nil {
		t.Errorf("after one session ended and one let go: %v", refused)
	}
}

// TestCopiesAreCounted: the rows of a COPY are among what a session keeps while they leave, and no longer.
func TestCopiesAreCounted(t *testing.T) {
	d := opened(t, gatewaytest.Options{}, nil)
	r := d.hello(t, map[string]string{"options": "-c noisegate.epsilon=0.1"})
	memory := d.server.config.Service.Memory()
	kept := memory.Taken
	questions := []string{"SELECT region, count(*) FROM people GROUP BY region", "COPY (SELECT sum(age) FROM people) TO STDOUT"}
	for _, sql := range questions {
		if refused := r.query(sql); refused != nil {
			t.Error(sql, refused.Message)
		}
		await(t, "nothing is kept", func() bool { return kept() == 0 })
	}
	before := d.Entries(t)
	memory.Open("ana").Resize(memory.Bytes())
	memory.Open("ana").Fit(held.Always) // of the reserve
	for _, sql := range questions {
		if refused := r.query(sql); refused == nil || refused.Code != stateMemory {
			t.Errorf("%s: %+v, though nothing more may be kept", sql, refused)
		}
	}
	if d.Entries(t) != before {
		t.Error("a question that was refused for memory was charged")
	}
	r.send(&pgproto3.Parse{Query: "ROLLBACK"}, &pgproto3.Bind{}, &pgproto3.Execute{}, &pgproto3.Sync{})
	if words := r.until("ReadyForQuery"); slices.ContainsFunc(words, func(w string) bool { return strings.HasPrefix(w, "ErrorResponse") }) {
		t.Errorf("nothing can be closed: %v", words)
	}
}
