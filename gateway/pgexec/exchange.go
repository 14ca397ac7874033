package pgexec

import (
	"context"
	"errors"
	"slices"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
	"github.com/jackc/pgx/v5/pgtype"

	"noisegate.example/internal/fault"
	"noisegate.example/sqlrewrite"
)

// exchange is a list of texts that go to the server together, in order. The server skips all texts after one that fails. Its zero value is
// empty.
type exchange struct {
	texts   []text
	opening int  // how many of them come before the first that may read a protected row
	later   bool // another exchange of the transaction has read protected rows
}

// text is one of them.
type text struct {
	sql     string
	args    []any
	read    func(*pgtype.Map, *pgconn.ResultReader) error // nil: the text has no rows
	life    life
	refusal error // of a condition: the error where it does not hold
}

// life says how long a connection remembers a text.
type life int

const (
	forgotten life = iota // not at all
	lasting               // until mostKept others came
	fixed                 // for ever: it depends on no question
)

// commands adds texts without parameters and rows. A connection must not remember what depends on a question before that is charged.
func (x *exchange) commands(l life, texts ...string) {
	for _, sql := range texts {
		x.texts = append(x.texts, text{sql: sql, life: l})
	}
}

// statement adds a text of a question that is charged. The connection keeps it prepared.
func (x *exchange) statement(sql string, args []any, read func(*pgtype.Map, *pgconn.ResultReader) error) {
	x.texts = append(x.texts, text{sql: sql, args: args, life: lasting, read: read})
}

// holds adds a condition: a fixed text that divides by zero, which ends the transaction, where the condition does not hold.
func (x *exchange) holds(sql string, args []any, refusal error) {
	x.texts = append(x.texts, text{sql: sql, args: args, life: fixed, refusal: refusal, read: oneRow(new(int))})
}

// oneRow reads one row into results.
func oneRow(results ...any) func(*pgtype.Map, *pgconn.ResultReader) error {
	return func(types *pgtype.Map, r *pgconn.ResultReader) error {
		rows := 0
		for ; r.NextRow(); rows++ {
			for i, f := range r.FieldDescriptions() {
				if err := types.Scan(f.DataTypeOID, f.Format, r.Values()[i], results[i]); err != nil {
					return err
				}
			}
		}
		if _, err := r.Close(); err != nil || rows != 1 {
			return firstError(err, errShape)
		}
		return nil
	}
}

// divisionByZero is the SQLSTATE of a condition that does not hold.
const divisionByZero = "22012"

// mostKept and mostKeptBytes bound the texts of questions that a connection keeps prepared, and keptKey is where it has the list, that used
// last at the end. A server takes some 40 times a text's bytes for it.
const (
	mostKept      = 256
	mostKeptBytes = 512 << 10
	keptKey       = "noisegate texts"
)

// prepare has the connection know the texts that it remembers. Where it fails, none of the texts has begun.
func (x *exchange) prepare(ctx context.Context, conn *pgx.Conn) ([]*pgconn.StatementDescription, error) {
	if err := x.keep(ctx, conn); err != nil {
		return nil, err
	}
	known := make([]*pgconn.StatementDescription, len(x.texts))
	for i, t := range x.texts {
		if t.life == forgotten {
			continue
		}
		var err error
		if known[i], err = conn.Prepare(ctx, t.sql, t.sql); err != nil { // known already, but for a new text
			return nil, err
		}
	}
	return known, nil
}

// keep makes the texts of questions the newest that the connection keeps, and has it forget the oldest others where these are too many. A
// text of this exchange is never forgotten, however many there are: the server would not know it.
func (x *exchange) keep(ctx context.Context, conn *pgx.Conn) error {
	var own []string
	for _, t := range x.texts {
		if t.life == lasting && !slices.Contains(own, t.sql) {
			own = append(own, t.sql)
		}
	}
	data := conn.PgConn().CustomData()
	kept, _ := data[keptKey].([]string)
	kept = slices.DeleteFunc(kept, func(sql string) bool { return slices.Contains(own, sql) })
	bytes, surplus := 0, 0
	for _, sql := range slices.Concat(kept, own) {
		bytes += len(sql)
	}
	for ; surplus < len(kept) && (len(kept)-surplus+len(own) > mostKept || bytes > mostKeptBytes); surplus++ {
		bytes -= len(kept[surplus])
	}
	data[keptKey] = append(kept[surplus:], own...)
	for _, sql := range kept[:surplus] {
		if err := conn.Deallocate(ctx, sql); err != nil {
			return err
		}
	}
	return nil
}

// run sends the texts, which are known but for those that are forgotten, and reads their rows. Its error is [fault.Untouched] until all of
// the opening has come back: the server sends that before it begins the next text.
func (x *exchange) run(ctx context.Context, conn *pgx.Conn, known []*pgconn.StatementDescription) error {
	builders := make([]pgx.ExtendedQueryBuilder, len(x.texts))
	for i, t := range x.texts {
		if known[i] == nil {
			continue
		}
		if err := builders[i].Build(conn.TypeMap(), known[i], t.args); err != nil {
			return fault.Untouched(err)
		}
	}
	pipeline := conn.PgConn().StartPipeline(ctx)
	defer func() { _ = pipeline.Close() }()
	for i, t := range x.texts {
		if i == x.opening && i > 0 {
			pipeline.SendFlushRequest() // the server sends what the opening came to before it looks at the next text
		}
		if known[i] == nil {
			pipeline.SendQueryParams(t.sql, nil, nil, nil, nil)
			continue
		}
		pipeline.SendQueryStatement(known[i], builders[i].ParamValues, builders[i].ParamFormats, builders[i].ResultFormats)
	}
	if err := pipeline.Sync(); err != nil && x.opening > 0 {
		return fault.Untouched(err)
	} else if err != nil {
		return err
	}
	for i, t := range x.texts {
		err := receive(pipeline, conn.TypeMap(), t)
		var said *pgconn.PgError
		if t.refusal != nil && errors.As(err, &said) && said.Code == divisionByZero {
			err = t.refusal
		}
		if i < x.opening {
			err = fault.Untouched(err)
		}
		if err != nil {
			return err
		}
	}
	return pipeline.Close()
}

// receive takes what comes of a text.
func receive(pipeline *pgconn.Pipeline, types *pgtype.Map, t text) error {
	results, err := pipeline.GetResults()
	if err != nil {
		return err
	}
	r, ok := results.(*pgconn.ResultReader)
	switch {
	case !ok:
		return errShape
	case t.read == nil:
		_, err = r.Close()
		return err
	default:
		return t.read(types, r)
	}
}

// faultOf is the fault that an error of an exchange comes to, where it read no protected row.
func faultOf(err error) error {
	if err == nil || errors.As(err, new(*fault.Error)) {
		return err
	}
	return fault.DataUnavailable(quiet(err))
}

// A process of PostgreSQL reads the file of a time zone when it needs it first, which takes some 100 microseconds, and raises an error
// where there is no such file. At the first row that reaches an expression both would tell that there is one. So a transaction reads the
// file of each zone that its statements name, of a constant, before it reads a row of people, and has no other process read rows: see
// [sqlrewrite.Statement.Planning].

// unknownZone is the SQLSTATE of a time zone that a server has no file of.
const unknownZone = "22023"

// zoneText reads the file of a zone. It holds no value of an analyst: statements name zones of a list, and are proven to.
func zoneText(zone string) string {
	return "SELECT pg_catalog.timezone('" + zone + "', pg_catalog.now())"
}

// zones has the files of the zones of statements read, as the last part of the opening. Other servers, on which tables may lie, would read
// them for themselves.
func (x *exchange) zones(distributed bool, statements ...sqlrewrite.Statement) error {
	for _, s := range statements {
		if len(s.Zones) > 0 && distributed {
			return fault.ZoneOnSeveralServers(s.Zones[0])
		}
		for _, zone := range s.Zones {
			x.commands(forgotten, zoneText(zone)) // a connection remembers none: it would show what others asked
			x.opening = len(x.texts)
		}
	}
	return nil
}
