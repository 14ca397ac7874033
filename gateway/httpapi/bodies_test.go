package httpapi

import (
	"bufio"
	"bytes"
	"fmt"
	"io"
	"net"
	"net/http"
	"runtime"
	"strings"
	"sync"
	"testing"
	"time"

	"noisegate.example/gateway/gatewaytest"
	"noisegate.example/internal/fault"
)

// allocated is how many bytes are allocated, by everybody, while something runs.
func allocated(run func()) uint64 {
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	run()
	runtime.ReadMemStats(&after)
	return after.TotalAlloc - before.TotalAlloc
}

// longBody sends a request by hand whose body is the text over and over, as long as the server takes it, and gives the answer's problem.
func longBody(t *testing.T, f *front, path string, length int, text []byte) (int, fault.Code) {
	t.Helper()
	conn, err := (&net.Dialer{}).DialContext(t.Context(), "tcp", strings.TrimPrefix(f.url, "http://"))
	if err != nil {
		t.Error(err)
		return 0, ""
	}
	defer conn.Close()
	_ = conn.SetDeadline(time.Now().Add(waitPatience))
	_, _ = fmt.Fprintf(conn, "POST %s HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer mel:ml\r\nContent-Type: application/json\r\n"+
		"Content-Length: %d\r\n\r\n", path, length)
	go func() {
		for sent := 0; sent < length; sent += len(text) {
			if _, err := conn.Write(text[:min(len(text), length-sent)]); err != nil {
				return // it was answered
			}
		}
	}()
	response, err := http.ReadResponse(bufio.NewReader(conn), nil)
	if err != nil {
		t.Error(err)
		return 0, ""
	}
	defer response.Body.Close()
	problem, _ := io.ReadAll(response.Body)
	return response.StatusCode, codeOf(t, string(problem))
}

// TestLongBodiesForNoEnsemble: what is asked of an ensemble that is not there, or of one that is not sealed, is refused before its body
// is read. All together allocate less than one of the bodies is long.
//
// covers: A85
func TestLongBodiesForNoEnsemble(t *testing.T) {
	const clients, length = 48, 31_000_000
	f := newFront(t, gatewaytest.Options{}, 4)
	ensemble(t, f, "draft")
	text := bytes.Repeat([]byte(`{"queries":["`), 1<<10)
	for path, want := range map[string]fault.Code{
		"/v1/pate/none/labels": fault.CodePateUnknownEnsemble, "/v1/pate/none/labels/estimate": fault.CodePateUnknownEnsemble,
		"/v1/pate/draft/labels": fault.CodePateNotSealed,
	} {
		took := allocated(func() {
			var all sync.WaitGroup
			for range clients {
				all.Go(func() {
					if _, code := longBody(t, f, path, length, text); code != want {
						t.Errorf("%s: %s instead of %s", path, code, want)
					}
				})
			}
			all.Wait()
		})
		t.Logf("%s: %d requests allocated %d kB", path, clients, took>>10)
		if took >= length {
			t.Errorf("%s: %d requests allocated %d bytes", path, clients, took)
		}
	}
}

// TestLongBodiesAreNotRead: a body that says that it is too long is not read.
func TestLongBodiesAreNotRead(t *testing.T) {
	f := newFront(t, gatewaytest.Options{}, 4)
	sealedEnsemble(t, f, "digits", 5)
	took := allocated(func() {
		status, code := longBody(t, f, "/v1/pate/digits/labels", 31_000_000, bytes.Repeat([]byte(`"`), 1<<12))
		if status != http.StatusRequestEntityTooLarge || code != fault.CodeRequestTooLarge {
			t.Errorf("%d %s", status, code)
		}
	})
	if took > maxLarge {
		t.Errorf("it allocated %d bytes", took)
	}
}

// TestBodiesInFlightAreBounded: of one caller, and of all; who ended gives back all.
func TestBodiesInFlightAreBounded(t *testing.T) {
	b := new(bodyBudget)
	take := func(caller string, n int64, want fault.Code) {
		t.Helper()
		if err := b.take(caller, n); fault.CodeOf(err) != want && (err != nil || want != "") {
			t.Errorf("%s takes %d: %v, want %q", caller, n, err, want)
		}
	}
	take("a", maxCallerBodies, "")
	take("a", 1, fault.CodeRequestTooMany)
	left := int64(maxBodies - maxCallerBodies)
	for i := 0; left > 0; i++ {
		n := min(left, maxCallerBodies)
		take(fmt.Sprint("other", i), n, "")
		left -= n
	}
	take("late", ownBodies, "") // whatever others take
	take("late", 1, fault.CodeRequestOverloaded)
	b.give("late", ownBodies)
	b.give("a", maxCallerBodies)
	take("late", maxCallerBodies, "")
	take("a", ownBodies+1, fault.CodeRequestOverloaded)
	if status := statusOf(fault.CodeRequestOverloaded); status != http.StatusServiceUnavailable {
		t.Errorf("status %d", status)
	}
}

// TestTricklingLongBodies: one caller's long bodies that do not end are refused beyond the caller's share; another caller's request is
// answered, and theirs, too, when they hung up.
//
// covers: A85
func TestTricklingLongBodies(t *testing.T) {
	f := newFront(t, gatewaytest.Options{}, 4)
	sealedEnsemble(t, f, "digits", 5)
	text := bytes.Repeat([]byte(" "), maxLarge-1)
	var conns []net.Conn
	trickle := func() {
		conn, err := (&net.Dialer{}).DialContext(t.Context(), "tcp", strings.TrimPrefix(f.url, "http://"))
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = conn.Close() })
		conns = append(conns, conn)
		go func() {
			_, _ = fmt.Fprintf(conn, "POST /v1/pate/digits/labels HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer mel:ml\r\n"+
				"Content-Type: application/json\r\nContent-Length: %d\r\n\r\n", maxLarge)
			_, _ = conn.Write(text)
		}()
	}
	ask := func(caller string) int {
		response, _ := f.do(t, call{method: http.MethodPost, path: "/v1/pate/digits/labels/estimate", token: caller + ":ml",
			kind: "application/json", body: `{"count":1,"mechanism":"gnmax","sigma":"40"}`})
		return response.StatusCode
	}
	await := func(want int, what string, meanwhile func()) {
		t.Helper()
		for deadline := time.Now().Add(waitPatience); ask("mel") != want; time.Sleep(10 * time.Millisecond) {
			if time.Now().After(deadline) {
				t.Fatalf("%s: no status %d within %s", what, want, waitPatience)
			}
			meanwhile()
		}
	}
	await(http.StatusTooManyRequests, "while her bodies trickle", func() {
		if len(conns) < maxOpenRequests/2 { // one may be refused for what a short request took meanwhile
			trickle()
		}
	})
	if status := ask("mo"); status != http.StatusOK {
		t.Errorf("another caller gets %d", status)
	}
	for _, conn := range conns {
		_ = conn.Close()
	}
	await(http.StatusOK, "after she hung up", func() {})
}
