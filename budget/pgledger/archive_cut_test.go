package pgledger_test

import (
	"errors"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"noisegate.example/budget"
	"noisegate.example/budget/journal"
	"noisegate.example/budget/pgledger"
	"noisegate.example/internal/pgtest"
	"noisegate.example/mechanisms"
)

var cutsEvery = flag.Int64("cuts-every", 8, "F06_ArchiveCutOff cuts at one point in so many, in the first of three runs at each second")

// An archive is cut off at each request and at each answer, COMMIT's too, with what a kill leaves of its file then. The ledger is whole,
// every entry is in the journal or in a file, and the next run ends whole, with the same name or, from where there is a file, another one.
// So is the very first archive of a ledger, before which there is nothing.
func testArchiveCutOff(t *testing.T, d *pgtest.ControlDatabase) {
	signer, l, archives := newSigner(t), open(t, d), d.Conn(t, d.DSN)
	var files []string // of committed archives; one at least but for the very first, so that a run has the same points each time
	begin := func(veryFirst bool) {
		t.Helper()
		l.Close()
		empty(t, d)
		if l, files = open(t, d), nil; veryFirst {
			return
		}
		files = []string{filepath.Join(t.TempDir(), "first")}
		spendFew(t, l, "first")
		if _, err := archived(t, d, files[0], signer); err != nil {
			t.Fatal(err)
		}
	}
	const unknown = 200
	first, last := int64(1), int64(unknown) // points at which there is a file, and at which a run ended by itself
	for _, run := range []string{"same name", "another name", "very first"} {
		committed, left, veryFirst := 0, 0, run == "very first"
		end, every := int64(2), *cutsEvery // of a run all points are cut there
		if run == "same name" {
			every = min(every, 2)
		}
		if veryFirst {
			first, end = 1, 14 // it asks for less
		}
		point := first
		for ended := false; !ended; point++ {
			if point < last-end && point%every > 0 {
				continue
			}
			if point > unknown {
				t.Fatal("the run does not end by itself")
			}
			if veryFirst || len(files) == 0 || len(files) > 8 { // all are read at each point
				begin(veryFirst)
			}
			renamed := run == "another name" || veryFirst && point%2 == 0
			spendFew(t, l, fmt.Sprintf("%s%d-%d", run, point, last))
			path := filepath.Join(t.TempDir(), "file")
			ended = cutOff(t, d.OwnerDSN, path, signer, point)
			var n int
			if err := archives.QueryRow(t.Context(), "SELECT count(*) FROM noisegate.archive").Scan(&n); err != nil {
				t.Fatal(err)
			}
			done := n > len(files)
			_, err := os.Stat(path)
			switch {
			case done && err != nil:
				t.Fatalf("at %d entries are removed, and no file has them: %v", point, err)
			case done:
				files = append(files, path)
				committed++
			case ended:
				t.Fatalf("at %d the run says that it archived, and it did not", point)
			case err == nil:
				if left++; left == 1 {
					first = point - every + 1
				}
			}
			if err := l.VerifyAll(t.Context()); err != nil {
				t.Fatalf("at %d: %v", point, err)
			}
			auditsWhole(t, l, signer, files...)

			if renamed {
				path += "-2"
			}
			made, err := archived(t, d, path, signer)
			switch {
			case done && renamed && errors.Is(err, pgledger.ErrNothingToArchive):
			case err != nil:
				t.Fatalf("after %d: %v", point, err)
			case made.Entries != 5: // one is of the archive before, or of an account that is opened
				t.Fatalf("after %d: %+v", point, made)
			case !done:
				files = append(files, path)
			}
			if err := errors.Join(l.VerifyNew(t.Context()), verifiesWhole(t, d)); err != nil {
				t.Fatalf("after %d: %v", point, err)
			}
			auditsWhole(t, l, signer, files...)
			if ended && every > 1 && last == unknown { // now the points before the end are known
				last, point, committed, ended = point+1, point-end-every, 0, false
			}
		}
		if run == "same name" {
			last = point
		}
		if committed != 2 || int64(left) < 20 / *cutsEvery { // COMMIT's answer is lost, or the run ended
			t.Errorf("%s: %d cuts were after the commit, %d left a file", run, committed, left)
		}
		t.Logf("%s: %d cuts left a file that was not committed, from %d on", run, left, first)
	}
}

func spendFew(t *testing.T, l *pgledger.Ledger, prefix string) {
	t.Helper()
	for _, id := range []budget.ReservationID{"a", "b"} {
		c := charge(prefix+string(id), mechanisms.Loss{Epsilon: 10}, account(budget.AnalystScope, "ana", 1_000_000))
		reserve(t, l, c)
		end := func() error { return l.Settle(t.Context(), c.ID, c.Loss, []byte("answer")) }
		if id == "b" {
			end = func() error { return l.Void(t.Context(), c.ID) }
		}
		if err := end(); err != nil {
			t.Fatal(err)
		}
	}
}

// cutOff archives through a wire that is cut off at a point, and says whether the run ended by itself. Else its files are what one has that
// is killed there, or a moment earlier.
func cutOff(t *testing.T, dsn, path string, signer *journal.Signer, point int64) (ended bool) {
	t.Helper()
	dir := filepath.Dir(path)
	files := func() (names []string) {
		entries, _ := os.ReadDir(dir)
		for _, e := range entries {
			names = append(names, e.Name())
		}
		return names
	}
	w, cut := newWire(t, dsn), make(chan []string, 1)
	w.point, w.atCut = point, func() { cut <- files() }
	_, err := pgledger.Archive(t.Context(), pgledger.ArchiveOrder{OwnerDSN: w.dsn, Dataset: "d", Before: time.Now(), By: "operator",
		Path: path, Signer: signer})
	if err == nil { // what is cut off is at most the farewell
		return true
	}
	var atCut []string
	select {
	case atCut = <-cut:
	default:
		t.Fatalf("at %d nothing is cut off: %v", point, err)
	}
	left := files()
	says := strings.Contains(err.Error(), "(keep "+path+": ")
	if says != (len(left) > 0) || len(left) > 1 || len(left) == 1 && left[0] != "file" {
		t.Errorf("at %d there are %v, and the run says: %v", point, left, err)
	}
	for _, name := range atCut {
		if name == "file" { // its two names, if it is killed between them
			err = os.Link(path, path+".unfinished-1")
		} else { // the disk has some of it
			err = os.WriteFile(filepath.Join(dir, name), []byte(`{"archive":1,"data`), 0o600)
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	return false
}
