package gateway

import (
	"context"
	"errors"
	"log/slog"
	"slices"
	"sync"

	"noisegate.example/api"
	"noisegate.example/catalog"
	"noisegate.example/gateway/auth"
	"noisegate.example/internal/fault"
	"noisegate.example/sqlrewrite"
)

// Preparer makes prepared copies of a dataset's tables, as a role that is for nothing else.
type Preparer interface {
	// Prepare makes a new version of the copy of a table of a snapshot, of all rows where full, and calls begins with each step as it begins.
	// Its errors say what to do, and nothing of a row; where it returns both an error and a version, that version serves.
	Prepare(ctx context.Context, on *catalog.Snapshot, t *catalog.Table, full bool, begins func(step string)) (*catalog.Version, error)
}

// The states of a run that prepares, and of each of its tables.
const (
	prepareWaiting   = "waiting"
	prepareRunning   = "running"
	prepareDone      = "done"
	prepareFailed    = "failed"
	prepareCancelled = "cancelled"
)

// keptPrepareJobs is how many runs of a dataset are known, the one that is running among them.
const keptPrepareJobs = 16

// The causes of a run's problems that are no error of the preparer.
var (
	errPreparePanic = errors.New("gateway: a run that prepares panicked")
	errPrepareEnds  = errors.New("gateway: the gateway ends, and begins no run")
)

// preparing are the runs of this gateway that prepare tables: it forgets them when it ends. The zero value is ready; it is safe for
// concurrent use.
type preparing struct {
	mu   sync.Mutex
	runs sync.WaitGroup
	ends bool                     // none begins any more
	jobs map[string][]*prepareJob // by dataset, the newest last, which alone may be running
}

// prepareJob is a run. [preparing.mu] guards what it reports.
type prepareJob struct {
	told   api.PrepareJob
	cancel context.CancelFunc
}

// PrepareTables begins to make new versions of the copies that the policy in force asks for. It does not wait for them. Its errors are
// those of [Service.Snapshot], policy/cannot-prepare, and policy/preparing while another run of the dataset is running here; the run itself
// notices a run of another gateway or of the command, and reports it as its problem.
func (s *Service) PrepareTables(ctx context.Context, who auth.Principal, dataset string, r api.PrepareRequest) (*api.PrepareJob, error) {
	on, err := s.Snapshot(dataset)
	if err != nil {
		return nil, err
	}
	tables := on.Prepared(r.Table)
	switch {
	case s.datasets[dataset].Preparer == nil:
		return nil, fault.NoPreparer(dataset)
	case len(tables) == 0:
		return nil, fault.NothingToPrepare(r.Table)
	}
	now := s.clock.Now()
	job := &prepareJob{told: api.PrepareJob{JobID: string(s.newID(now)), Dataset: dataset, By: who.Subject, State: prepareRunning,
		Begun: now.UTC()}}
	for _, t := range tables {
		name := catalog.TableName{Schema: t.Schema, Name: t.Name}.String()
		job.told.Tables = append(job.told.Tables, api.PrepareTable{Table: name, State: prepareWaiting})
	}
	ctx, job.cancel = context.WithCancel(context.WithoutCancel(ctx)) // it goes on when the request has its answer
	told, err := s.preparing.begin(job)
	if err != nil {
		job.cancel()
		return nil, err
	}
	s.log.InfoContext(ctx, "tables are prepared", "dataset", dataset, "job", told.JobID, "subject", who.Subject)
	go s.prepareTables(ctx, dataset, r.Full, job)
	return told, nil
}

// PrepareJob is how far a run is that this gateway knows of: the latest of each dataset are kept, until the gateway ends. Its errors are
// policy/unknown-dataset and request/not-found.
func (s *Service) PrepareJob(dataset, id string) (*api.PrepareJob, error) {
	return s.prepareJob(dataset, id, func(*prepareJob) {})
}

// CancelPrepare ends a run of this gateway; the versions that it already made stay, and serve. It does not wait for the end. A run that has
// ended is left as it is. Its errors are those of [Service.PrepareJob].
func (s *Service) CancelPrepare(dataset, id string) (*api.PrepareJob, error) {
	return s.prepareJob(dataset, id, func(job *prepareJob) { job.cancel() })
}

// prepareJob calls do with a run, and returns its state.
func (s *Service) prepareJob(dataset, id string, do func(*prepareJob)) (*api.PrepareJob, error) {
	if _, ok := s.datasets[dataset]; !ok {
		return nil, fault.UnknownDataset(dataset)
	}
	s.preparing.mu.Lock()
	defer s.preparing.mu.Unlock()
	for _, job := range s.preparing.jobs[dataset] {
		if job.told.JobID == id {
			do(job)
			return job.tell(), nil
		}
	}
	return nil, fault.RequestNotFound("run of this name that this gateway knows of")
}

// PreparedCopies lists the copies of a dataset's tables, as questions find them, and the runs of this gateway. It asks no database: who
// looks must not have questions find a version earlier. Its errors are those of [Service.Snapshot].
func (s *Service) PreparedCopies(dataset string) (*api.PreparedList, error) {
	on, err := s.Snapshot(dataset)
	if err != nil {
		return nil, err
	}
	list := &api.PreparedList{Dataset: dataset, CanPrepare: s.datasets[dataset].Preparer != nil, Tables: []api.PreparedTable{},
		Jobs: s.preparing.tellAll(dataset)}
	place := map[catalog.TableName]int{}
	add := func(name catalog.TableName, of api.PreparedTable) {
		of.Table, of.Versions = name.String(), []api.PreparedVersion{}
		place[name] = len(list.Tables)
		list.Tables = append(list.Tables, of)
	}
	for _, t := range on.Prepared("") {
		add(catalog.TableName{Schema: t.Schema, Name: t.Name},
			api.PreparedTable{MaxRows: t.Prepare, Ranks: t.Ranks, Append: t.Append.Column, Required: t.PreparedOnly})
	}
	versions := s.copies(on)
	serving := s.serving.of(on, versions)
	for _, v := range versions {
		if _, known := place[v.Table]; !known {
			add(v.Table, api.PreparedTable{})
		}
		of := &list.Tables[place[v.Table]]
		of.Versions = append(of.Versions, api.PreparedVersion{Version: v.Number, AsOf: v.AsOf.UTC(), Fits: sqlrewrite.Serving(on, v) != nil,
			Serves: slices.ContainsFunc(serving, func(c copied) bool { return c.version == v })})
	}
	return list, nil
}

// KeepPreparing lets runs go on until the context ends; then it cancels those that are running, and waits for their end.
func (s *Service) KeepPreparing(ctx context.Context) {
	<-ctx.Done()
	s.preparing.end()
	s.preparing.runs.Wait()
}

// prepareTables makes the versions of a run. One table's failure is its own. Questions find a version when the gateway looks the next time,
// as one that was made elsewhere: when exactly a run came to its end would tell how long it took, and so of rows.
func (s *Service) prepareTables(ctx context.Context, dataset string, full bool, job *prepareJob) {
	defer s.preparing.runs.Done()
	defer job.cancel()
	for i := range job.told.Tables {
		tell := func(change func(*api.PrepareTable)) {
			s.preparing.tell(func() { change(&job.told.Tables[i]) })
		}
		tell(func(of *api.PrepareTable) { of.State = prepareRunning })
		name := job.told.Tables[i].Table
		version, err := s.prepareTable(ctx, dataset, name, full, func(step string) { tell(func(of *api.PrepareTable) { of.Step = step }) })
		if err != nil {
			s.log.WarnContext(ctx, "preparing a table failed", "dataset", dataset, "job", job.told.JobID, "table", name,
				slog.String("code", string(fault.CodeOf(err))), slog.String("cause", fault.Cause(err)))
		}
		tell(func(of *api.PrepareTable) { became(of, version, err, ctx.Err() != nil) })
	}
	s.preparing.tell(func() {
		now := s.clock.Now().UTC()
		job.told.Ended, job.told.State = &now, stateOf(job.told.Tables)
	})
}

// prepareTable makes one version. A panic ends it, and not the gateway.
func (s *Service) prepareTable(ctx context.Context, dataset, name string, full bool, begins func(step string)) (version *catalog.Version,
	err error) {
	defer func() {
		if recover() != nil { // whose text may be a function of data
			err = fault.Internal(errPreparePanic)
		}
	}()
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	inForce := func() (*catalog.Snapshot, error) { return s.Snapshot(dataset) }
	return PrepareInForce(ctx, s.datasets[dataset].Preparer, name, full, inForce, begins)
}

// PrepareInForce makes a version of a table's copy by the policy that is in force now: one of an earlier policy would serve nobody, and
// stand before a good one. Its errors are those of inForce and of p, and policy/cannot-prepare where the policy asks for no copy.
func PrepareInForce(ctx context.Context, p Preparer, table string, full bool, inForce func() (*catalog.Snapshot, error),
	begins func(step string)) (*catalog.Version, error) {
	on, err := inForce()
	if err != nil {
		return nil, err
	}
	tables := on.Prepared(table)
	if len(tables) == 0 {
		return nil, fault.NothingToPrepare(table)
	}
	return p.Prepare(ctx, on, tables[0], full, begins)
}

// became records how the preparation of a table ended.
func became(of *api.PrepareTable, version *catalog.Version, err error, cancelled bool) {
	of.Step, of.State = "", prepareDone
	if version != nil {
		at := version.AsOf.UTC()
		of.Version, of.AsOf = version.Number, &at
	}
	switch {
	case err == nil:
	case version == nil && cancelled:
		of.State = prepareCancelled
	case version == nil:
		of.State, of.Problem = prepareFailed, err.Error()
	default:
		of.Problem = err.Error()
	}
}

// stateOf is how a run ended, by its tables.
func stateOf(tables []api.PrepareTable) string {
	for _, state := range []string{prepareCancelled, prepareFailed} {
		if slices.ContainsFunc(tables, func(t api.PrepareTable) bool { return t.State == state }) {
			return state
		}
	}
	return prepareDone
}

// begin takes a run among the known ones, unless another of its dataset is running, and forgets the oldest.
func (p *preparing) begin(job *prepareJob) (*api.PrepareJob, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	known := p.jobs[job.told.Dataset]
	if n := len(known); n > 0 && known[n-1].told.State == prepareRunning {
		return nil, fault.Preparing(job.told.Dataset, known[n-1].told.JobID)
	}
	if p.ends {
		return nil, fault.DataUnavailable(errPrepareEnds)
	}
	if p.jobs == nil {
		p.jobs = map[string][]*prepareJob{}
	}
	p.jobs[job.told.Dataset] = append(known[max(0, len(known)-keptPrepareJobs+1):], job)
	p.runs.Add(1)
	return job.tell(), nil
}

// end cancels what is running, and lets nothing begin.
func (p *preparing) end() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.ends = true
	for _, jobs := range p.jobs {
		for _, job := range jobs {
			job.cancel()
		}
	}
}

// tellAll is what all known runs of a dataset tell now, newest first.
func (p *preparing) tellAll(dataset string) []api.PrepareJob {
	p.mu.Lock()
	defer p.mu.Unlock()
	all := []api.PrepareJob{}
	for _, job := range slices.Backward(p.jobs[dataset]) {
		all = append(all, *job.tell())
	}
	return all
}

// tell changes what runs tell.
func (p *preparing) tell(change func()) {
	p.mu.Lock()
	defer p.mu.Unlock()
	change()
}

// tell returns a copy of what a run reports now.
func (j *prepareJob) tell() *api.PrepareJob {
	told := j.told
	told.Tables = slices.Clone(told.Tables)
	return &told
}
