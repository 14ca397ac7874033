package pate

import (
	"context"
	"errors"
	"fmt"
	"math/big"
	"reflect"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"

	"noisegate.example/internal/fault"
	"noisegate.example/internal/pgtest"
)

// stored is a store with one ensemble, pets, by the three voters.
func stored(t testing.TB) (*Store, *pgtest.ControlDatabase) {
	t.Helper()
	c := pgtest.Control(t)
	s := open(t, c)
	define(t, s, "pets")
	return s, c
}

func open(t testing.TB, c *pgtest.ControlDatabase) *Store {
	t.Helper()
	s, err := Open(t.Context(), c.LedgerDSN)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(s.Close)
	return s
}

func define(t testing.TB, s *Store, name string) *Version {
	t.Helper()
	v, err := s.Define(t.Context(), Definition{Name: name, Dataset: "shelter", Ensemble: voters(t), By: "sam"})
	if err != nil {
		t.Fatal(err, errors.Unwrap(err))
	}
	return v
}

func ballots(t testing.TB, csv string) *Ballots {
	t.Helper()
	b, err := voters(t).Read(strings.NewReader(csv), CSV, "")
	if err != nil {
		t.Fatal(err)
	}
	return b
}

const threeQueries = "query,cat,dog\na,3,0\nb,1,2\nc,0,3\n"

// sealing loads three queries and seals them.
func sealing(t testing.TB, s *Store, name string) *Version {
	t.Helper()
	if _, err := s.Load(t.Context(), name, ballots(t, threeQueries), "sam"); err != nil {
		t.Fatal(err, errors.Unwrap(err))
	}
	v, err := s.Seal(t.Context(), name, "sam")
	if err != nil {
		t.Fatal(err, errors.Unwrap(err))
	}
	return v
}

func TestStoreKeepsVotesAndAnswers(t *testing.T) {
	s, _ := stored(t)
	v := sealing(t, s, "pets")
	if v.Queries != 3 || len(v.Digest) != 32 || v.SealedBy != "sam" || v.LoadedBy != "sam" || v.Number != 1 || v.Dataset != "shelter" {
		t.Errorf("%+v", v)
	}
	q := Question{1}
	asked, err := s.Find(t.Context(), v, "mel", []string{"c", "a"}, []Question{q}, true)
	if err != nil || len(asked) != 2 || asked[0].Query != 2 || asked[1].Query != 0 || asked[0].Outcome != nil {
		t.Fatalf("%+v, %v", asked, err)
	}
	if _, err := s.Find(t.Context(), v, "mel", []string{"a", "d"}, []Question{q}, true); fault.CodeOf(err) != fault.CodePateUnknownQuery ||
		!fault.IsUntouched(err) {
		t.Errorf("%v", err)
	}
	votes, err := s.Votes(t.Context(), v, []int32{2, 0})
	if err != nil || len(votes) != 2 {
		t.Fatal(votes, err)
	}
	// With noise that is all but none, the plurality wins: the votes are those of c and of a.
	mode, err := NewMode(v.Ensemble, Settings{Mode: GNMax, Sigma: "0.001"})
	if err != nil {
		t.Fatal(err)
	}
	for i, want := range []int{1, 0} {
		if o, _, err := mode.Label(fixedSampler(t), votes[i], Student{}); err != nil || o.Label != want {
			t.Errorf("vote %d: %+v, %v", i, o, err)
		}
	}
	outcomes := []Outcome{{Status: Answered, Label: 1, Histogram: []*big.Int{big.NewInt(-4), big.NewInt(1 << 40)}},
		{Status: Rejected, Label: NoLabel}}
	sold, err := s.Record(t.Context(), v, Purchase{"mel", "charge"}, []int32{2, 0}, []Question{q}, outcomes)
	if err != nil || !reflect.DeepEqual(sold, []Sold{{outcomes[0], true, true}, {outcomes[1], true, true}}) {
		t.Fatal(sold, err, errors.Unwrap(err))
	}
	// Another draw of c comes too late, and what is stored is max's as well; b is new.
	if asked, err := s.Find(t.Context(), v, "max", []string{"a", "b", "c"}, []Question{q}, false); err != nil || asked[0].Outcome != nil ||
		asked[2].Outcome != nil {
		t.Errorf("%+v, %v", asked, err)
	}
	sold, err = s.Record(t.Context(), v, Purchase{"max", "later"}, []int32{2, 1}, []Question{q},
		[]Outcome{{Status: Answered}, {Status: Reinforced}})
	if err != nil || !reflect.DeepEqual(sold, []Sold{{outcomes[0], false, true}, {Outcome{Status: Reinforced}, true, true}}) {
		t.Error(sold, err)
	}
	if again, err := s.Record(t.Context(), v, Purchase{"max", "again"}, []int32{2}, []Question{q},
		[]Outcome{{Status: Answered}}); err != nil || again[0].Fresh || again[0].New {
		t.Error(again, err)
	}
	if asked, err := s.Find(t.Context(), v, "max", []string{"c", "a", "b"}, []Question{{1}, {1}, {1}}, false); err != nil ||
		!reflect.DeepEqual(*asked[0].Outcome, outcomes[0]) ||
		!asked[0].Owned || asked[1].Outcome != nil || asked[1].Owned || asked[2].Outcome.Status != Reinforced {
		t.Errorf("%+v, %v", asked, err)
	}
	asked, err = s.Find(t.Context(), v, "mel", []string{"a", "b", "c"}, []Question{q}, true)
	if err != nil || asked[0].Outcome.Status != Rejected || asked[0].Outcome.Label != NoLabel || asked[1].Outcome.Status != Reinforced ||
		asked[2].Outcome.Label != 1 || fmt.Sprint(asked[2].Outcome.Histogram) != "[-4 1099511627776]" {
		t.Errorf("%+v, %v", asked, err)
	}
	// Questions by query: only b has an answer under its question.
	asked, err = s.Find(t.Context(), v, "mel", []string{"a", "b", "c"}, []Question{{2}, {1}, {3}}, true)
	if err != nil || asked[0].Outcome != nil || asked[1].Outcome == nil || asked[2].Outcome != nil {
		t.Errorf("%+v, %v", asked, err)
	}
	tally, err := s.Tally(t.Context(), v, nil)
	if err != nil || tally[Answered] != 1 || tally[Rejected] != 1 || tally[Reinforced] != 1 {
		t.Errorf("%v, %v", tally, err)
	}
	queries, became, err := s.Released(t.Context(), v, q)
	if err != nil || !slices.Equal(queries, []int32{0, 1, 2}) || !slices.Equal(became, []Status{Rejected, Reinforced, Answered}) {
		t.Errorf("%v, %v, %v", queries, became, err)
	}
	if table, err := s.Table(t.Context(), v, []int32{1}); err != nil || !slices.Equal(table.v.n, []uint32{1, 2}) {
		t.Error(err)
	}
}

// TestNobodyChangesSealedVotes tries every way of changing a sealed version, as the gateway's role and as the owner of the tables.
//
// covers: A82
func TestNobodyChangesSealedVotes(t *testing.T) {
	s, c := stored(t)
	v := sealing(t, s, "pets")
	if _, err := s.Record(t.Context(), v, Purchase{"mel", "charge"}, []int32{0}, []Question{{1}},
		[]Outcome{{Status: Answered, Label: 0}}); err != nil {
		t.Fatal(err)
	}
	attempts := []string{
		"UPDATE noisegate.pate_votes SET counts = counts",
		"UPDATE noisegate.pate_votes SET key = key || 'x'",
		"UPDATE noisegate.pate_votes SET query_no = query_no + 10",
		"UPDATE noisegate.pate_votes SET ensemble_id = ensemble_id + 1",
		"DELETE FROM noisegate.pate_votes",
		"DELETE FROM noisegate.pate_votes WHERE query_no = 2",
		"TRUNCATE noisegate.pate_votes",
		"INSERT INTO noisegate.pate_votes SELECT ensemble_id, 77, 'new', counts FROM noisegate.pate_votes WHERE query_no = 0",
		"INSERT INTO noisegate.pate_votes SELECT ensemble_id, query_no, key, counts FROM noisegate.pate_votes ON CONFLICT (ensemble_id, " +
			"query_no) DO UPDATE SET counts = ''",
		"INSERT INTO noisegate.pate_votes VALUES (999, 0, 'orphan', '\\x0003')",
		"UPDATE noisegate.pate_ensemble SET sealed_at = NULL, sealed_by = NULL",
		"UPDATE noisegate.pate_ensemble SET sealed_at = now()",
		"UPDATE noisegate.pate_ensemble SET queries = 2",
		"UPDATE noisegate.pate_ensemble SET digest = digest",
		"UPDATE noisegate.pate_ensemble SET classes = '{a,b}'",
		"UPDATE noisegate.pate_ensemble SET teachers = 4",
		"UPDATE noisegate.pate_ensemble SET dataset = 'other'",
		"UPDATE noisegate.pate_ensemble SET max_teachers_per_person = 2",
		"UPDATE noisegate.pate_ensemble SET name = 'other', version = 7",
		"UPDATE noisegate.pate_ensemble SET partition_sha256 = NULL",
		"UPDATE noisegate.pate_ensemble SET sanitise = '{}'",
		"DELETE FROM noisegate.pate_ensemble",
		"TRUNCATE noisegate.pate_ensemble CASCADE",
		"UPDATE noisegate.pate_answer SET label = 1",
		"UPDATE noisegate.pate_answer SET question = question",
		"UPDATE noisegate.pate_answer SET status = 'rejected', label = NULL",
		"DELETE FROM noisegate.pate_answer",
		"TRUNCATE noisegate.pate_answer",
		"DELETE FROM noisegate.pate_epsilon",
		"TRUNCATE noisegate.pate_epsilon",
	}
	for role, dsn := range map[string]string{"gateway": c.LedgerDSN, "owner": c.OwnerDSN} {
		conn := c.Conn(t, dsn)
		for _, sql := range attempts {
			tag, err := conn.Exec(t.Context(), sql)
			var refused *pgconn.PgError
			// Restricted, no right, or (an empty table under a row trigger) nothing to change.
			if errors.As(err, &refused) && (refused.Code == "23001" || refused.Code == "42501") ||
				err == nil && tag.RowsAffected() == 0 && strings.Contains(sql, "pate_epsilon") {
				continue
			}
			t.Errorf("%s: %s: %s, %v", role, sql, tag, err)
		}
		_ = conn.Close(context.Background())
	}
	after, err := s.Sealed(t.Context(), "pets")
	if err != nil || after.ID != v.ID || after.Queries != 3 || string(after.Digest) != string(v.Digest) {
		t.Errorf("%+v, %v", after, err)
	}
	if table, err := s.Table(t.Context(), v, []int32{0, 1, 2}); err != nil || !slices.Equal(table.v.n, []uint32{3, 0, 1, 2, 0, 3}) {
		t.Error(err)
	}
}

// TestLoadsMeetASeal: votes that are loaded while the version is being sealed are either all part of it, or none is.
//
// covers: A82
func TestLoadsMeetASeal(t *testing.T) {
	s, c := stored(t)
	for round := range 20 {
		name := fmt.Sprintf("pets%d", round)
		define(t, s, name)
		if _, err := s.Load(t.Context(), name, ballots(t, "query,cat,dog\n"+name+",3,0\n"), "sam"); err != nil {
			t.Fatal(err)
		}
		var group sync.WaitGroup
		var loaded, sealed error
		group.Go(func() { _, loaded = s.Load(t.Context(), name, ballots(t, threeQueries+name+",1,2\n"), "sam") })
		group.Go(func() { _, sealed = s.Seal(t.Context(), name, "sam") })
		group.Wait()
		if sealed != nil || loaded != nil && fault.CodeOf(loaded) != fault.CodePateSealed {
			t.Fatalf("seal: %v, load: %v", sealed, loaded)
		}
		v, err := s.Sealed(t.Context(), name)
		if err != nil || loaded == nil && v.Queries != 4 || loaded != nil && v.Queries != 1 {
			t.Fatalf("%+v after %v, %v", v, loaded, err)
		}
		conn := c.Conn(t, c.LedgerDSN)
		var n int64
		if err := conn.QueryRow(t.Context(), "SELECT count(*) FROM noisegate.pate_votes WHERE ensemble_id = $1",
			v.ID).Scan(&n); err != nil || n != v.Queries {
			t.Fatalf("%d rows, %d queries, %v", n, v.Queries, err)
		}
		_ = conn.Close(context.Background())
	}
}

// TestDefinitionsMeetALoad: a draft that is defined anew while its votes are loaded takes them with it, and no votes stay behind.
func TestDefinitionsMeetALoad(t *testing.T) {
	s, c := stored(t)
	if _, err := s.Load(t.Context(), "pets", ballots(t, threeQueries), "sam"); err != nil {
		t.Fatal(err)
	}
	redefined := func(err error) bool { return err == nil || fault.CodeOf(err) == fault.CodePateRedefined }
	for range 20 {
		var group sync.WaitGroup
		for range 2 {
			group.Go(func() {
				if _, err := s.Load(t.Context(), "pets", ballots(t, threeQueries), "sam"); !redefined(err) {
					t.Error(err, errors.Unwrap(err))
				}
			})
			group.Go(func() {
				if _, err := s.Define(t.Context(), Definition{Name: "pets", Dataset: "shelter", Ensemble: voters(t), By: "sam"}); !redefined(err) {
					t.Error(err, errors.Unwrap(err))
				}
			})
		}
		group.Wait()
	}
	conn := c.Conn(t, c.LedgerDSN)
	var left, queries int64
	if err := conn.QueryRow(t.Context(), `SELECT (SELECT count(*) FROM noisegate.pate_votes), coalesce(sum(queries), 0) FROM noisegate.pate_ensemble`).Scan(&left, &queries); err != nil || left != queries {
		t.Errorf("%d rows of votes, %d of them loaded, %v", left, queries, err)
	}
}

// TestRawWritesWaitForASeal: a writer without the store's manners meets the trigger.
//
// covers: A82
func TestRawWritesWaitForASeal(t *testing.T) {
	s, c := stored(t)
	if _, err := s.Load(t.Context(), "pets", ballots(t, "query,cat,dog\na,3,0\n"), "sam"); err != nil {
		t.Fatal(err)
	}
	sealer, writer := c.Conn(t, c.LedgerDSN), c.Conn(t, c.LedgerDSN)
	tx, err := sealer.Begin(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if _, err := tx.Exec(t.Context(), "UPDATE noisegate.pate_ensemble SET sealed_by = 'sam', sealed_at = now()"); err != nil {
		t.Fatal(err)
	}
	written := make(chan error, 1)
	go func() {
		_, err := writer.Exec(t.Context(), "INSERT INTO noisegate.pate_votes SELECT ensemble_id, 1, 'late', '\\x00030000' FROM "+
			"noisegate.pate_ensemble")
		written <- err
	}()
	if err := tx.Commit(t.Context()); err != nil {
		t.Fatal(err)
	}
	var refused *pgconn.PgError
	if err := <-written; !errors.As(err, &refused) || refused.Code != "23001" {
		t.Errorf("a vote after the seal: %v", err)
	}
}

// TestVersionsOfAnEnsemble: a draft is replaced, a sealed version stays, and the dataset is for life.
func TestVersionsOfAnEnsemble(t *testing.T) {
	s, _ := stored(t)
	if _, err := s.Sealed(t.Context(), "pets"); fault.CodeOf(err) != fault.CodePateNotSealed {
		t.Error(err)
	}
	if _, err := s.Sealed(t.Context(), "birds"); fault.CodeOf(err) != fault.CodePateUnknownEnsemble {
		t.Error(err)
	}
	if _, err := s.Seal(t.Context(), "pets", "sam"); fault.CodeOf(err) != fault.CodePateNoVotes {
		t.Error(err)
	}
	if _, err := s.Load(t.Context(), "pets", ballots(t, threeQueries), "sam"); err != nil {
		t.Fatal(err)
	}
	if v := define(t, s, "pets"); v.Number != 1 || v.Queries != 0 {
		t.Errorf("a draft that was replaced kept its votes: %+v", v)
	}
	sealing(t, s, "pets")
	if v := define(t, s, "pets"); v.Number != 2 || v.Queries != 0 {
		t.Errorf("%+v", v)
	}
	if v, err := s.Sealed(t.Context(), "pets"); err != nil || v.Number != 1 {
		t.Errorf("%+v, %v", v, err)
	}
	_, err := s.Define(t.Context(), Definition{Name: "pets", Dataset: "zoo", Ensemble: voters(t), By: "sam"})
	if fault.CodeOf(err) != fault.CodePateEnsemble {
		t.Error(err)
	}
	larger, err := NewEnsemble(EnsembleParameters{Teachers: 4, Classes: []string{"cat", "dog"}})
	if err != nil {
		t.Fatal(err)
	}
	other, err := larger.Read(strings.NewReader("query,cat,dog\na,4,0\n"), CSV, "")
	if err != nil {
		t.Fatal(err)
	}
	if _, err := s.Load(t.Context(), "pets", other, "sam"); fault.CodeOf(err) != fault.CodePateRedefined {
		t.Errorf("votes of another definition: %v", err)
	}
}

// TestWhatIsSealedIsWhatWasLoaded: votes that changed in between, in number, name or count, are not sealed.
//
// covers: A82
func TestWhatIsSealedIsWhatWasLoaded(t *testing.T) {
	s, c := stored(t)
	for _, change := range []string{
		"UPDATE noisegate.pate_votes SET counts = '\\x00020001' WHERE key = 'b'",
		"UPDATE noisegate.pate_votes SET key = 'd' WHERE key = 'b'",
		"DELETE FROM noisegate.pate_votes WHERE key = 'b'",
		"INSERT INTO noisegate.pate_votes SELECT ensemble_id, 3, 'd', counts FROM noisegate.pate_votes WHERE key = 'b'",
	} {
		if _, err := s.Load(t.Context(), "pets", ballots(t, threeQueries), "sam"); err != nil {
			t.Fatal(err)
		}
		c.Exec(t, "ALTER TABLE noisegate.pate_votes DISABLE TRIGGER ALL; "+change+"; ALTER TABLE noisegate.pate_votes ENABLE TRIGGER ALL")
		if _, err := s.Seal(t.Context(), "pets", "sam"); fault.CodeOf(err) != fault.CodeDataUnavailable {
			t.Errorf("%s: %v", change, err)
		}
	}
	sealing(t, s, "pets")
}

// TestTamperedVotesAreNotUsed: stored counts that are not what was loaded fail closed, without a word about them.
func TestTamperedVotesAreNotUsed(t *testing.T) {
	s, c := stored(t)
	v := sealing(t, s, "pets")
	c.Exec(t, "ALTER TABLE noisegate.pate_votes DISABLE TRIGGER ALL; UPDATE noisegate.pate_votes SET counts = '\\x00040000' WHERE "+
		"query_no = 0;"+
		"UPDATE noisegate.pate_votes SET counts = '\\x0003' WHERE query_no = 1")
	for _, query := range []int32{0, 1, 9} {
		if _, err := s.Votes(t.Context(), v, []int32{query}); fault.CodeOf(err) != fault.CodeDataUnavailable || fault.IsUntouched(err) {
			t.Errorf("query %d: %v", query, err)
		}
	}
	if _, err := s.Votes(t.Context(), v, []int32{2}); err != nil {
		t.Error(err)
	}
}

// TestManyRecordOnce: of many who draw the same rows at once, one is heard for each row.
//
// covers: A84
func TestManyRecordOnce(t *testing.T) {
	s, _ := stored(t)
	v := sealing(t, s, "pets")
	orders := [][]int32{{0, 1, 2}, {2, 1, 0}, {1, 2, 0}, {0, 2, 1}}
	wins := make([]int, 3)
	var mu sync.Mutex
	var group sync.WaitGroup
	for i, order := range orders {
		group.Go(func() {
			outcomes := []Outcome{{Status: Answered, Label: i % 2}, {Status: Answered, Label: i % 2}, {Status: Answered, Label: i % 2}}
			sold, err := s.Record(t.Context(), v, Purchase{"mel", fmt.Sprint(i)}, order, []Question{{7}}, outcomes)
			if err != nil {
				t.Error(err, errors.Unwrap(err))
				return
			}
			mu.Lock()
			defer mu.Unlock()
			for j, s := range sold {
				if s.Fresh != s.New {
					t.Errorf("%+v", s)
				}
				if s.Fresh {
					wins[order[j]]++
				}
			}
		})
	}
	group.Wait()
	if !slices.Equal(wins, []int{1, 1, 1}) {
		t.Errorf("each row was stored %v times", wins)
	}
}

// BenchmarkLoad stores 9,000 queries of 10 classes.
func BenchmarkLoad(b *testing.B) { benchmarkLoad(b, 9_000, 10, 250) }

// BenchmarkLoadGlyph stores 100,000 queries of 150 classes by 5,000 teachers.
func BenchmarkLoadGlyph(b *testing.B) { benchmarkLoad(b, 100_000, 150, 5_000) }

func benchmarkLoad(b *testing.B, queries, classes int, teachers int64) {
	c := pgtest.Control(b)
	s := open(b, c)
	names := make([]string, classes)
	for i := range names {
		names[i] = fmt.Sprint(i)
	}
	e, err := NewEnsemble(EnsembleParameters{Teachers: teachers, Classes: names})
	if err != nil {
		b.Fatal(err)
	}
	t := newTally(e)
	if err := t.number(queries); err != nil {
		b.Fatal(err)
	}
	for q := range queries {
		t.counts[q*classes+q%classes] = uint32(teachers) - 1
		t.counts[q*classes+(q+1)%classes] = 1
	}
	votes, err := t.finish(nil)
	if err != nil {
		b.Fatal(err)
	}
	if _, err := s.Define(b.Context(), Definition{Name: "bench", Dataset: "d", Ensemble: e, By: "sam"}); err != nil {
		b.Fatal(err)
	}
	for b.Loop() {
		if _, err := s.Load(b.Context(), "bench", votes, "sam"); err != nil {
			b.Fatal(err, errors.Unwrap(err))
		}
	}
	b.StopTimer()
	var bytes int64
	conn := c.Conn(b, c.LedgerDSN)
	err = conn.QueryRow(context.Background(), "SELECT sum(pg_column_size(counts)) FROM noisegate.pate_votes").Scan(&bytes)
	if err != nil && !errors.Is(err, pgx.ErrNoRows) {
		b.Fatal(err)
	}
	b.ReportMetric(float64(bytes)/1e6, "MB-of-counts")
}

// TestRacingSealsBindOnePartition: of ensembles over one partition of people that are sealed at the same time, one is.
//
// covers: L6
func TestRacingSealsBindOnePartition(t *testing.T) {
	c := pgtest.Control(t)
	s := open(t, c)
	const racers = 4
	for i := range racers {
		name := fmt.Sprint("pets", i)
		if _, err := s.Define(t.Context(), Definition{Name: name, Dataset: "shelter", Ensemble: voters(t), Partition: make([]byte, 32),
			By: "sam"}); err != nil {
			t.Fatal(err)
		}
		if _, err := s.Load(t.Context(), name, ballots(t, threeQueries+fmt.Sprintf("d%d,2,1\n", i)), "sam"); err != nil {
			t.Fatal(err)
		}
	}
	errs := make([]error, racers)
	var group sync.WaitGroup
	for i := range racers {
		group.Go(func() { _, errs[i] = s.Seal(t.Context(), fmt.Sprint("pets", i), "sam") })
	}
	group.Wait()
	sealed := 0
	for _, err := range errs {
		if err == nil {
			sealed++
		} else if fault.CodeOf(err) != fault.CodePateEnsemble {
			t.Error(err)
		}
	}
	if sealed != 1 {
		t.Errorf("%d are sealed", sealed)
	}
}
