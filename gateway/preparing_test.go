package gateway

import (
	"context"
	"errors"
	"slices"
	"strings"
	"testing"
	"time"

	"noisegate.example/api"
	"noisegate.example/catalog"
	"noisegate.example/gateway/auth"
	"noisegate.example/internal/fault"
)

// fakePreparer does what it is told.
type fakePreparer func(ctx context.Context, on *catalog.Snapshot, t *catalog.Table, begins func(step string)) (*catalog.Version, error)

func (f fakePreparer) Prepare(ctx context.Context, on *catalog.Snapshot, t *catalog.Table, _ bool, begins func(step string)) (
	*catalog.Version, error) {
	return f(ctx, on, t, begins)
}

// untilCancelled is a run that comes as far as its rows, and ends when it is cancelled.
func untilCancelled(ctx context.Context, _ *catalog.Snapshot, _ *catalog.Table, begins func(string)) (*catalog.Version, error) {
	begins("units")
	begins("rows")
	<-ctx.Done()
	return nil, errors.New("the copy was not made")
}

func steward() auth.Principal {
	return auth.Principal{Subject: "sam", Roles: []auth.Role{auth.Steward}}
}

// preparingRig is a rig with a table of visits, and no copy yet.
func preparingRig(t *testing.T, p Preparer) (*rig, *fakeCopies) {
	t.Helper()
	r, copies := preparedRig(t)
	copies.seen, copies.now = nil, nil
	d := r.datasets["d"]
	d.Preparer = p
	r.datasets["d"] = d
	return r, copies
}

// begun begins a run of all tables.
func (r *rig) begun(t *testing.T) *api.PrepareJob {
	t.Helper()
	job, err := r.PrepareTables(t.Context(), steward(), "d", api.PrepareRequest{})
	if err != nil {
		t.Fatal(err)
	}
	return job
}

// reached waits until a run is as the condition wants it.
func (r *rig) reached(t *testing.T, id, what string, is func(*api.PrepareJob) bool) *api.PrepareJob {
	t.Helper()
	for deadline := time.Now().Add(time.Minute); ; time.Sleep(time.Millisecond) {
		job, err := r.PrepareJob("d", id)
		switch {
		case err != nil:
			t.Fatal(err)
		case is(job):
			return job
		case time.Now().After(deadline):
			t.Fatalf("the run is not %s within a minute: %+v", what, job)
		}
	}
}

func (r *rig) ended(t *testing.T, id string) *api.PrepareJob {
	t.Helper()
	return r.reached(t, id, "at its end", func(job *api.PrepareJob) bool { return job.State != prepareRunning })
}

// Each table of a run is prepared by the policy that is in force when its turn comes, and not where that does not ask for it any more.
func TestPrepareByThePolicyInForce(t *testing.T) {
	for _, prepares := range []int64{2, 0} {
		var r *rig
		var by []int64
		r, _ = preparingRig(t, fakePreparer(func(_ context.Context, on *catalog.Snapshot, _ *catalog.Table, _ func(string)) (
			*catalog.Version, error) {
			by = append(by, on.Version)
			next := *r.policies.snapshot
			next.Version++
			next.Tables = nil
			for _, t := range on.Tables {
				changed := *t
				changed.Prepare = prepares
				next.Tables = append(next.Tables, &changed)
			}
			r.policies.snapshot = &next
			return &catalog.Version{Number: 1}, nil
		}))
		r.policies.snapshot.Tables[0].Prepare = 1
		first := r.policies.snapshot.Version
		tables := r.ended(t, r.begun(t).JobID).Tables
		if len(tables) != 2 || tables[0].State != prepareDone {
			t.Fatalf("%+v", tables)
		}
		if prepares > 0 && !slices.Equal(by, []int64{first, first + 1}) {
			t.Errorf("prepared by policies %v", by)
		}
		if prepares == 0 && (len(by) != 1 || tables[1].State != prepareFailed || !strings.Contains(tables[1].Problem, "prepare for no table")) {
			t.Errorf("prepared by policies %v, %+v", by, tables)
		}
	}
}

// A run goes on after its request, reports its steps, and questions find its version when the gateway looks again, not before.
func TestPrepareJob(t *testing.T) {
	proceed := make(chan struct{})
	var copies *fakeCopies
	var version catalog.Version
	r, copies := preparingRig(t, fakePreparer(func(_ context.Context, _ *catalog.Snapshot, _ *catalog.Table, begins func(string)) (
		*catalog.Version, error) {
		begins("rows")
		<-proceed
		copies.now = []catalog.Version{version}
		return &version, nil
	}))
	version = versionOf(t, r.policies.snapshot, 1)
	ctx, leave := context.WithCancel(t.Context())
	job, err := r.PrepareTables(ctx, steward(), "d", api.PrepareRequest{Table: "visits"})
	if err != nil {
		t.Fatal(err)
	}
	leave() // as a request's context ends with its answer
	if job.State != prepareRunning || job.By != "sam" || job.Ended != nil || len(job.Tables) != 1 || job.Tables[0].Table != "visits" {
		t.Errorf("%+v", job)
	}
	r.reached(t, job.JobID, "at its rows", func(job *api.PrepareJob) bool { return job.Tables[0].Step == "rows" })
	close(proceed)
	done := r.ended(t, job.JobID)
	if of := done.Tables[0]; done.State != prepareDone || done.Ended == nil || of.State != prepareDone || of.Step != "" || of.Version != 1 ||
		!of.AsOf.Equal(version.AsOf) || of.Problem != "" {
		t.Errorf("%+v", done)
	}
	if copies.looks > 0 {
		t.Error("the end of a run shows at once")
	}
	if err := copies.Look(t.Context(), "d"); err != nil {
		t.Fatal(err)
	}
	if a := r.ask(t, ana(), askVisits()); !strings.HasPrefix(a.Data, "visits prepared 1 ") {
		t.Errorf("a question is answered from %q", a.Data)
	}
	if r.spentEpsilon(t) != "0.5" {
		t.Errorf("%s were spent", r.spentEpsilon(t))
	}
}

// While a run is running there is no second one of its dataset; when it was cancelled there is.
func TestOnePrepareAtATime(t *testing.T) {
	r, _ := preparingRig(t, fakePreparer(untilCancelled))
	first := r.begun(t)
	_, err := r.PrepareTables(t.Context(), steward(), "d", api.PrepareRequest{Table: "public.visits"})
	var refused *fault.Error
	if !errors.As(err, &refused) || refused.Code != fault.CodePreparing || !strings.Contains(refused.Msg, first.JobID) {
		t.Errorf("a second run: %v", err)
	}
	if _, err := r.CancelPrepare("d", first.JobID); err != nil {
		t.Error(err)
	}
	if job := r.ended(t, first.JobID); job.State != prepareCancelled || job.Tables[0].State != prepareCancelled ||
		job.Tables[0].Problem != "" {
		t.Errorf("%+v", job)
	}
	second := r.begun(t)
	if _, err := r.CancelPrepare("d", second.JobID); err != nil {
		t.Error(err)
	}
	r.ended(t, second.JobID)
	if job, err := r.CancelPrepare("d", second.JobID); err != nil || job.State != prepareCancelled {
		t.Errorf("a run that has ended: %+v, %v", job, err)
	}
}

// A run fails in the words of the preparer, and a panic is one run's failure; the run reports nothing about it.
func TestPrepareFails(t *testing.T) {
	const words = "the protected database has no space left"
	version := catalog.Version{Number: 7}
	for name, c := range map[string]struct {
		do            fakePreparer
		state, says   string
		versionServes int64
	}{
		"an error": {do: func(context.Context, *catalog.Snapshot, *catalog.Table, func(string)) (*catalog.Version, error) {
			return nil, errors.New(words)
		}, state: prepareFailed, says: words},
		"a panic": {do: func(context.Context, *catalog.Snapshot, *catalog.Table, func(string)) (*catalog.Version, error) {
			panic("Failing row contains (4, secret)")
		}, state: prepareFailed, says: "internal: something went wrong inside the gateway"},
		"leftovers": {do: func(context.Context, *catalog.Snapshot, *catalog.Table, func(string)) (*catalog.Version, error) {
			return &version, errors.New("version 7 serves; those before it could not be dropped")
		}, state: prepareDone, says: "could not be dropped", versionServes: 7},
	} {
		t.Run(name, func(t *testing.T) {
			r, _ := preparingRig(t, c.do)
			job := r.ended(t, r.begun(t).JobID)
			if of := job.Tables[0]; job.State != c.state || of.State != c.state || !strings.Contains(of.Problem, c.says) ||
				of.Version != c.versionServes || strings.Contains(of.Problem, "secret") {
				t.Errorf("%+v", job)
			}
		})
	}
}

// What cannot be prepared is refused before anything begins.
func TestPrepareIsRefused(t *testing.T) {
	r, _ := preparingRig(t, fakePreparer(untilCancelled))
	for name, c := range map[string]struct {
		dataset, table string
		change         func()
		want           fault.Code
	}{
		"no dataset":    {dataset: "other", want: fault.CodeUnknownDataset},
		"no such table": {dataset: "d", table: "people", want: fault.CodeCannotPrepare},
		"its schema":    {dataset: "d", table: "private.visits", want: fault.CodeCannotPrepare},
		"stale": {dataset: "d", change: func() { r.policies.stale = fault.PolicyStale() },
			want: fault.CodePolicyStale},
		"no preparer": {dataset: "d", change: func() {
			d := r.datasets["d"]
			d.Preparer = nil
			r.datasets["d"] = d
		}, want: fault.CodeCannotPrepare},
		"no prepare": {dataset: "d", change: func() { r.policies.snapshot = testSnapshot() }, want: fault.CodeCannotPrepare},
	} {
		t.Run(name, func(t *testing.T) {
			was, datasets := *r.policies, r.datasets["d"]
			if c.change != nil {
				c.change()
			}
			if _, err := r.PrepareTables(t.Context(), steward(), c.dataset, api.PrepareRequest{Table: c.table}); fault.CodeOf(err) != c.want {
				t.Errorf("got %v, want %s", err, c.want)
			}
			*r.policies, r.datasets["d"] = was, datasets
		})
	}
	if _, err := r.PrepareJob("other", "x"); fault.CodeOf(err) != fault.CodeUnknownDataset {
		t.Error(err)
	}
	if _, err := r.CancelPrepare("d", "x"); fault.CodeOf(err) != fault.CodeRequestNotFound {
		t.Error(err)
	}
}

// A gateway that ends cancels what is running, waits for it, and begins nothing; of the runs that ended it knows the latest.
func TestPrepareEndsWithTheGateway(t *testing.T) {
	r, _ := preparingRig(t, fakePreparer(untilCancelled))
	var all []string
	for range keptPrepareJobs + 1 {
		all = append(all, r.begun(t).JobID)
		if _, err := r.CancelPrepare("d", all[len(all)-1]); err != nil {
			t.Fatal(err)
		}
		r.ended(t, all[len(all)-1])
	}
	if _, err := r.PrepareJob("d", all[0]); fault.CodeOf(err) != fault.CodeRequestNotFound {
		t.Errorf("the oldest: %v", err)
	}
	if _, err := r.PrepareJob("d", all[1]); err != nil {
		t.Errorf("one of the latest: %v", err)
	}
	last := r.begun(t)
	ctx, end := context.WithCancel(t.Context())
	ended := make(chan struct{})
	go func() { r.KeepPreparing(ctx); close(ended) }()
	end()
	select {
	case <-ended:
	case <-time.After(time.Minute):
		t.Fatal("the runs of a gateway that ends are not over within a minute")
	}
	if job := r.ended(t, last.JobID); job.State != prepareCancelled {
		t.Errorf("%+v", job)
	}
	if _, err := r.PrepareTables(t.Context(), steward(), "d", api.PrepareRequest{}); fault.CodeOf(err) != fault.CodeDataUnavailable {
		t.Errorf("a run of a gateway that ends: %v", err)
	}
}

// Stewards see which versions there are, which are what the policy asks for, and which one questions find: the newest of these. Looking
// asks no database, so that no question finds a version earlier for it.
func TestPreparedCopies(t *testing.T) {
	r, copies := preparingRig(t, fakePreparer(untilCancelled))
	on := r.policies.snapshot
	other, gone := versionOf(t, on, 3), versionOf(t, on, 1)
	other.Digest[0]++ // of another policy
	gone.Table.Name = "calls"
	copies.seen = []catalog.Version{other, versionOf(t, on, 2), versionOf(t, on, 1), gone}
	begun := r.begun(t)
	list, err := r.PreparedCopies("d")
	if err != nil || len(list.Tables) != 2 || !list.CanPrepare || len(list.Jobs) != 1 || list.Jobs[0].JobID != begun.JobID {
		t.Fatalf("%+v, %v", list, err)
	}
	if visits := list.Tables[0]; visits.Table != "visits" || visits.MaxRows != 4 || visits.Required || !slices.Equal(visits.Versions,
		[]api.PreparedVersion{{Version: 3, AsOf: other.AsOf}, {Version: 2, AsOf: copies.seen[1].AsOf, Fits: true, Serves: true},
			{Version: 1, AsOf: copies.seen[2].AsOf, Fits: true}}) {
		t.Errorf("%+v", visits)
	}
	if calls := list.Tables[1]; calls.Table != "calls" || calls.MaxRows != 0 || len(calls.Versions) != 1 || calls.Versions[0].Fits {
		t.Errorf("%+v", calls)
	}
	if copies.looks != 0 {
		t.Errorf("the database was looked at %d times", copies.looks)
	}
	if _, err := r.CancelPrepare("d", begun.JobID); err != nil {
		t.Fatal(err)
	}
	r.ended(t, begun.JobID)
	second := r.begun(t)
	if list, err = r.PreparedCopies("d"); err != nil || len(list.Jobs) != 2 || list.Jobs[0].JobID != second.JobID ||
		list.Jobs[1].State != prepareCancelled {
		t.Errorf("%+v, %v", list, err)
	}
	if _, err := r.PreparedCopies("other"); fault.CodeOf(err) != fault.CodeUnknownDataset {
		t.Error(err)
	}
}
