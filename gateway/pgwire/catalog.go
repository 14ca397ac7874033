package pgwire

import (
	"context"
	"errors"
	"slices"
	"strconv"
	"strings"
	"time"

	"noisegate.example/internal/fault"
	"noisegate.example/sqlrewrite/statement"
)

// Catalog answers statements about names and types, on databases that have no row. Its errors are faults, and errors of the database with
// an SQLSTATE, which may be shown.
type Catalog interface {
	// Facts are what rewriting needs to know of a dataset's database; data/unavailable where there is none.
	Facts(ctx context.Context, dataset string) (*CatalogFacts, error)
	Ask(context.Context, CatalogQuery) (*CatalogAnswer, error)
	// Describe gives the types of parameters and the columns, without running anything.
	Describe(context.Context, CatalogQuery) (types []uint32, fields []CatalogField, err error)
}

// CatalogFacts are what is known of a dataset's catalog.
type CatalogFacts struct {
	Version string // server_version
	Owner   uint32 // of the tables, by OID
	Columns map[statement.TableName][]statement.Column
}

// CatalogQuery is a text that [statement.Rewrite] gave, with what a session adds to it.
type CatalogQuery struct {
	Dataset      string
	Text         string
	SearchPath   []string // schemas, the first first
	Values       [][]byte // of parameters, in their formats; nil: NULL
	Types        []uint32 // of parameters; 0: the database infers
	ValueFormats []int16
	Formats      []int16 // of the answer
	// Leave is called once, when the server works on the query no more: after the answer, where the server does not stop when told to.
	Leave func()
	// Room is asked, as rows come, whether an answer may have so many bytes.
	Room func(bytes int) bool
}

// CatalogField is a column of an answer.
type CatalogField struct {
	Name     string
	OID      uint32
	Size     int16
	Modifier int32
}

// CatalogAnswer is an answer, its values in the formats that were asked for.
type CatalogAnswer struct {
	Fields []CatalogField
	Rows   [][][]byte
}

// facts are those of the session's dataset; nil where there is no catalog.
func (s *Server) facts(ctx context.Context, dataset string) *CatalogFacts {
	if s.config.Catalog == nil {
		return nil
	}
	facts, err := s.config.Catalog.Facts(ctx, dataset)
	if err != nil {
		return nil
	}
	return facts
}

// catalogQuery rewrites a statement for the catalog; nil where there is none.
func (c *session) catalogQuery(ctx context.Context, one statement.Statement) (*CatalogQuery, *refusal) {
	facts := c.server.facts(ctx, c.dataset)
	if facts == nil {
		return nil, nil
	}
	view, refused := c.view(ctx, one, facts)
	if refused != nil {
		return nil, refused
	}
	text, err := statement.Rewrite(one, view)
	if err != nil {
		return nil, ofStatement(err)
	}
	return &CatalogQuery{Dataset: c.dataset, Text: text, SearchPath: c.settings.schemas()}, nil
}

// view is what the session may see of the catalogs where these would show a server.
func (c *session) view(ctx context.Context, one statement.Statement, facts *CatalogFacts) (statement.View, *refusal) {
	v := statement.View{Names: c.names(), User: c.who.Subject, PID: int32(c.pid), Version: "PostgreSQL " + facts.Version + " (Noisegate)",
		Owner: facts.Owner, Columns: facts.Columns, Sessions: c.server.activity(c), Own: map[string]statement.Rows{}}
	for _, d := range definitions() {
		v.Parameters = append(v.Parameters, statement.Parameter{Name: d.name, Value: c.settings.get(strings.ToLower(d.name))})
	}
	if !strings.Contains(strings.ToLower(one.Text), "noisegate") {
		return v, nil // none of our own relations: they are made of the ledger
	}
	for name, rows := range map[string]func(context.Context) (statement.Rows, error){
		"budget": c.budgetRows, "columns": c.columnRows, "releases": c.releaseRows,
	} {
		made, err := rows(ctx)
		if err != nil {
			return v, refusalOf(err, nil)
		}
		v.Own[name] = made
	}
	return v, nil
}

// activity are the sessions of an analyst on a dataset.
func (s *Server) activity(of *session) []statement.Activity {
	s.mu.Lock()
	defer s.mu.Unlock()
	var list []statement.Activity
	for _, c := range s.sessions {
		if c.who.Subject != of.who.Subject || c.dataset != of.dataset {
			continue
		}
		a := statement.Activity{PID: int32(c.pid), State: "idle", Started: c.started}
		c.mu.Lock()
		if a.Application = c.application; c.running != "" || c == of {
			a.State = "active"
		}
		c.mu.Unlock()
		list = append(list, a)
	}
	slices.SortFunc(list, func(a, b statement.Activity) int { return int(a.PID) - int(b.PID) })
	return list
}

func optional(s string) *string {
	if s == "" {
		return nil
	}
	return &s
}

// budgetRows is the relation noisegate.budget: one row.
func (c *session) budgetRows(ctx context.Context) (statement.Rows, error) {
	answer, err := c.server.config.Service.Budget(ctx, c.who, c.dataset)
	if err != nil {
		return statement.Rows{}, err
	}
	b := answer.Budgets[0]
	return statement.Rows{
		Columns: []statement.Column{{Name: "account", Type: "text"}, {Name: "spent_epsilon", Type: "numeric"},
			{Name: "remaining_epsilon", Type: "numeric"}, {Name: "remaining_rho", Type: "numeric"}, {Name: "advice", Type: "text"}},
		Values: [][]*string{{new(b.Account), optional(string(b.Spent.Epsilon)), optional(string(b.Remaining.Epsilon)),
			optional(string(b.Remaining.Rho)), new(b.Advice)}},
	}, nil
}

// columnRows is the relation noisegate.columns: what the policy says of each exposed column.
func (c *session) columnRows(context.Context) (statement.Rows, error) {
	rows := statement.Rows{Columns: []statement.Column{{Name: "table_schema", Type: "text"}, {Name: "table_name", Type: "text"},
		{Name: "column_name", Type: "text"}, {Name: "data_type", Type: "text"}, {Name: "low", Type: "text"}, {Name: "high", Type: "text"},
		{Name: "keys", Type: "text"}, {Name: "domain_size", Type: "integer"}}}
	dataset, err := c.server.config.Service.Dataset(c.dataset)
	if err != nil {
		return rows, err
	}
	for _, t := range dataset.Tables {
		for _, column := range t.Columns {
			row := []*string{new(t.Schema), new(t.Name), new(column.Name), new(column.Type), nil, nil,
				optional(column.Keys), nil}
			if column.Bounds != nil {
				row[4], row[5] = new(column.Bounds.Lo), new(column.Bounds.Hi)
			}
			if column.Domain != nil {
				row[7] = new(strconv.Itoa(len(column.Domain)))
			}
			rows.Values = append(rows.Values, row)
		}
	}
	return rows, nil
}

// releaseRows is the relation noisegate.releases: the newest of the analyst's own on the dataset.
func (c *session) releaseRows(ctx context.Context) (statement.Rows, error) {
	rows := statement.Rows{Columns: []statement.Column{{Name: "release_id", Type: "text"}, {Name: "sql", Type: "text"},
		{Name: "epsilon", Type: "numeric"}, {Name: "rho", Type: "numeric"}, {Name: "released_at", Type: "timestamp with time zone"}}}
	page, err := c.server.config.Service.Releases(ctx, c.who, "")
	if err != nil {
		return rows, err
	}
	for _, r := range page.Releases {
		if r.Dataset == c.dataset {
			rows.Values = append(rows.Values, []*string{new(r.ReleaseID), new(r.Request.SQL),
				optional(string(r.Cost.Epsilon)),
				optional(string(r.Cost.Rho)), new(r.At.Format(time.RFC3339))})
		}
	}
	return rows, nil
}

// inPlace does work on the catalog with a rewritten statement, when the analyst has a place, until [session.cancel]. It reports whether
// there is a catalog.
func (c *session) inPlace(ctx context.Context, one statement.Statement, work func(context.Context, *CatalogQuery) error) (bool, *refusal) {
	if c.server.config.Catalog == nil {
		return false, nil
	}
	ctx, release := c.watched(ctx)
	defer release()
	ctx, stop := context.WithCancel(ctx)
	defer stop()
	c.stops(stop)
	defer c.stops(nil)
	leave, err := c.server.config.Service.EnterCatalog(ctx, c.who)
	switch {
	case ctx.Err() != nil:
		if err == nil {
			leave()
		}
		return true, cancelled()
	case err != nil:
		return true, refusalOf(err, nil)
	}
	q, refused := c.catalogQuery(ctx, one)
	if refused != nil || q == nil {
		leave()
	} else {
		q.Leave = leave
		if err := work(ctx, q); err != nil && ctx.Err() == nil {
			refused = c.ofCatalog(ctx, err)
		}
	}
	if ctx.Err() != nil {
		return true, cancelled()
	}
	return q != nil, refused
}

// stops notes how the query about catalogs that runs is stopped, for [session.cancel]; nil: there is none.
func (c *session) stops(stop context.CancelFunc) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.stop = stop
}

// askCatalog answers a statement of kind Catalog.
func (c *session) askCatalog(ctx context.Context, p *portal) (*result, *refusal) {
	var answer *CatalogAnswer
	asked, refused := c.inPlace(ctx, p.of.one, func(ctx context.Context, q *CatalogQuery) (err error) {
		q.Values, q.Types, q.ValueFormats, q.Formats = p.given, p.of.types, p.givenFormats, p.formats
		q.Room = func(bytes int) bool { return c.memory.Fit(int64(c.size() + bytes)) }
		answer, err = c.server.config.Catalog.Ask(ctx, *q)
		return err
	})
	switch {
	case refused != nil:
		return nil, refused
	case !asked:
		return c.constants(ctx, p)
	}
	r := &result{columns: columnsOfFields(answer.Fields), tag: "SELECT", in: p.formats}
	for _, row := range answer.Rows {
		values := make([]value, len(row))
		for i, v := range row {
			values[i] = v
		}
		r.rows = append(r.rows, values)
	}
	return r, nil
}

// describeCatalog finds parameters and columns of a statement of kind Catalog.
func (c *session) describeCatalog(ctx context.Context, s *prepared) *refusal {
	asked, refused := c.inPlace(ctx, s.one, func(ctx context.Context, q *CatalogQuery) error {
		q.Types = s.types
		types, fields, err := c.server.config.Catalog.Describe(ctx, *q)
		if err == nil {
			s.types, s.columns = types, columnsOfFields(fields)
		}
		return err
	})
	if refused == nil && !asked {
		if s.columns, refused = c.describeQuestion(ctx, s); refused != nil {
			return noCatalog()
		}
	}
	return refused
}

func columnsOfFields(fields []CatalogField) []column {
	columns := []column{}
	for _, f := range fields {
		columns = append(columns, column{f.Name, kind{oid: f.OID, size: f.Size, modifier: f.Modifier}})
	}
	return columns
}

// ofCatalog is an error of the catalog: its database knows nothing of people, so that what it says may be shown.
func (c *session) ofCatalog(ctx context.Context, err error) *refusal {
	var server interface {
		error
		SQLState() string
	}
	var known *fault.Error
	switch {
	case errors.As(err, &known):
		if known.Code != fault.CodeDataUnavailable {
			return refusalOf(err, nil)
		}
	case errors.As(err, &server):
		text := server.Error()
		if _, after, ok := strings.Cut(text, ": "); ok {
			text, _, _ = strings.Cut(after, " (SQLSTATE")
		}
		return &refusal{state: server.SQLState(), text: text}
	}
	c.server.config.Log.ErrorContext(ctx, "the catalog did not answer", "dataset", c.dataset, "cause", fault.Cause(err))
	return noCatalog()
}
