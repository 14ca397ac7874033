package pgwire

import (
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"slices"
	"testing"
	"time"

	"github.com/jackc/pgx/v5/pgproto3"

	"noisegate.example/gateway/gatewaytest"
)

// asking counts the sessions whose questions run or wait for a place.
func (d *door) asking() (n int) {
	d.server.mu.Lock()
	defer d.server.mu.Unlock()
	for _, c := range d.server.sessions {
		if c.isAsking() {
			n++
		}
	}
	return n
}

// await waits until something is so.
func await(t *testing.T, what string, is func() bool) {
	t.Helper()
	for deadline := time.Now().Add(20 * time.Second); !is(); time.Sleep(time.Millisecond) {
		if time.Now().After(deadline) {
			t.Fatalf("not within 20 s: %s", what)
		}
	}
}

// TestWhoHangsUpIsNotCharged: a question that waits for a place ends when its client is gone, in clear and over TLS, also where the client
// said more before, or took its leave. Its place in the queue goes to the next, whose answer leaves while the first questions still run.
//
// covers: A68
func TestWhoHangsUpIsNotCharged(t *testing.T) {
	if testing.Short() {
		t.Skip("-short: this takes long")
	}
	config, pool := certificate(t)
	d := opened(t, gatewaytest.Options{Quantum: time.Second}, func(c *Config) { c.TLS = config })
	asks := func(r *raw, i int) {
		r.send(&pgproto3.Query{String: fmt.Sprintf("SELECT count(*) FROM people WHERE age <> %d", i)})
	}
	priced := map[string]string{"options": "-c noisegate.epsilon=0.1"}
	running := []*raw{d.hello(t, priced), d.hello(t, priced)}                       // as many as one analyst has places
	if refused := running[0].query("SELECT count(*) FROM people"); refused != nil { // opens the accounts
		t.Fatal(refused.Message)
	}
	before := d.Entries(t)
	for i, r := range running {
		asks(r, i)
	}
	await(t, "two questions are charged", func() bool { return d.Entries(t) == before+len(running) })

	inClear, silent, talks, leaves := d.hello(t, priced), d.hello(t, priced), d.hello(t, priced), d.hello(t, priced)
	over := d.dial(t)
	if _, err := over.Write(packet(tlsCode, "")); err != nil {
		t.Fatal(err)
	}
	if _, err := io.ReadFull(over, make([]byte, 1)); err != nil {
		t.Fatal(err)
	}
	secured := tls.Client(over.Conn, &tls.Config{RootCAs: pool, ServerName: "127.0.0.1", MinVersion: tls.VersionTLS12})
	overTLS := &raw{t, secured, pgproto3.NewFrontend(secured, secured)}
	overTLS.login(priced)
	waiting := []*raw{inClear, overTLS, silent, talks, leaves}
	for i, r := range waiting {
		asks(r, 10+i)
	}
	talks.send(&pgproto3.Query{String: "SELECT count(*) FROM people"}, new(pgproto3.Sync))
	leaves.send(new(pgproto3.Terminate))
	await(t, "five questions wait", func() bool { return d.asking() == len(running)+len(waiting) })
	for _, r := range waiting {
		_ = r.Close()
	}
	await(t, "those whose clients are gone have left the queue", func() bool { return d.asking() == len(running) })
	for _, r := range running {
		if words := r.until("ReadyForQuery"); !slices.Contains(words, "CommandComplete SELECT 1") {
			t.Error(words)
		}
	}
	if n := d.Entries(t); n != before+2*len(running) { // each has a reservation and its end
		t.Errorf("%d entries of the ledger, want %d: who is gone was charged", n, before+2*len(running))
	}
}

// TestWhoHangsUpLeavesEachQueue: also where a client waits for columns or for an estimate, its session ends when it hangs up, and not when
// a place becomes free.
func TestWhoHangsUpLeavesEachQueue(t *testing.T) {
	if testing.Short() {
		t.Skip("-short: this takes long")
	}
	d := opened(t, gatewaytest.Options{Quantum: 8 * time.Second}, nil) // so long the places are taken
	priced := map[string]string{"options": "-c noisegate.epsilon=0.1"}
	running := []*raw{d.hello(t, priced), d.hello(t, priced)} // as many as one analyst has places
	for i, r := range running {
		r.send(&pgproto3.Query{String: fmt.Sprintf("SELECT count(*) FROM people WHERE age <> %d", i)})
	}
	await(t, "two questions run", func() bool { return d.asking() == len(running) })
	const text = "SELECT count(*) FROM people WHERE age > 3"
	for what, says := range map[string][]pgproto3.FrontendMessage{
		"describes": {&pgproto3.Parse{Query: text}, &pgproto3.Describe{ObjectType: 'S'}, new(pgproto3.Sync)},
		"explains":  {&pgproto3.Query{String: "EXPLAIN " + text}},
	} {
		gone := d.hello(t, priced)
		gone.send(says...)
		_ = gone.Close()
		await(t, "the client that "+what+" has left", func() bool { return d.held() == len(running) })
	}
	if d.asking() != len(running) {
		t.Error("a client left when a place became free")
	}
	for _, r := range running {
		if words := r.until("ReadyForQuery"); !slices.Contains(words, "CommandComplete SELECT 1") {
			t.Error(words)
		}
	}
}

// held is how many sessions there are.
func (d *door) held() int {
	d.server.mu.Lock()
	defer d.server.mu.Unlock()
	return len(d.server.sessions)
}

// TestWhatIsSaidAheadIsAnswered: what a client says while it waits for an answer is answered next, in its order, however much it is.
func TestWhatIsSaidAheadIsAnswered(t *testing.T) {
	d := opened(t, gatewaytest.Options{Quantum: 50 * time.Millisecond}, nil)
	r := d.hello(t, map[string]string{"options": "-c noisegate.epsilon=0.01"})
	const many = 3 * maxAhead
	go func() {
		for i := range 4 { // each alone, so that most are read by who waits
			time.Sleep(10 * time.Millisecond)
			text, err := (&pgproto3.Query{String: fmt.Sprintf("SELECT count(*) AS n%d FROM people -- %*d", i, many/4*i, 0)}).Encode(nil)
			if err != nil {
				panic(err)
			}
			_, _ = r.Write(text)
		}
	}()
	for i := range 4 {
		for column := ""; ; {
			m := r.receive()
			if described, ok := m.(*pgproto3.RowDescription); ok {
				column = string(described.Fields[0].Name)
			}
			if refused, ok := m.(*pgproto3.ErrorResponse); ok {
				t.Fatal(refused.Message)
			}
			if _, ready := m.(*pgproto3.ReadyForQuery); ready {
				if want := fmt.Sprint("n", i); column != want {
					t.Fatalf("the answer has the column %q, want %s", column, want)
				}
				break
			}
		}
	}
}

// TestAhead: what is read ahead is read again, then what follows; an end that was seen is seen again.
func TestAhead(t *testing.T) {
	ours, theirs := net.Pipe()
	a := &ahead{Conn: theirs}
	done := a.watch(func() { t.Error("hung up") })
	if _, err := ours.Write([]byte("abc")); err != nil {
		t.Fatal(err)
	}
	_ = theirs.SetReadDeadline(time.Unix(1, 0))
	<-done
	_ = theirs.SetReadDeadline(time.Time{})
	read := make([]byte, 2)
	for _, want := range []string{"ab", "c"} {
		n, err := a.Read(read)
		if err != nil || string(read[:n]) != want {
			t.Fatalf("%q, %v, want %q", read[:n], err, want)
		}
	}
	told := make(chan bool, 2)
	done = a.watch(func() { told <- true })
	_ = ours.Close()
	<-done
	<-a.watch(func() { told <- true })
	if len(told) != 2 {
		t.Error("an end is not told each time")
	}
	if n, err := a.Read(read); n != 0 || !errors.Is(err, io.EOF) {
		t.Errorf("%d bytes, %v at the end", n, err)
	}
	if _, err := theirs.Read(read); errors.Is(err, os.ErrDeadlineExceeded) {
		t.Error("there is a deadline still")
	}
}
