package pgexec

import (
	"context"
	"errors"
	"fmt"
	"strconv"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
	"github.com/jackc/pgx/v5/pgtype"
	"github.com/jackc/pgx/v5/pgxpool"

	"noisegate.example/catalog"
	"noisegate.example/internal/fault"
	"noisegate.example/sqlrewrite"
)

// Calculator evaluates outer layers of queries (HAVING, ORDER BY, LIMIT, arithmetic) over released values. It runs on the
// control database with a pool of its own, so that it can neither see protected rows nor keep the ledger waiting. It is safe
// for concurrent use.
type Calculator struct {
	pool *pgxpool.Pool
}

// NewCalculator prepares connections; [Calculator.Close] ends them.
func NewCalculator(ctx context.Context, config Config) (*Calculator, error) {
	pool, err := open(ctx, config, nil)
	if err != nil {
		return nil, err
	}
	return &Calculator{pool: pool}, nil
}

// Close ends all connections when they are idle.
func (c *Calculator) Close() { c.pool.Close() }

// Compute runs an outer layer and returns its rows in PostgreSQL's text form with the names of the columns' types, without
// the ordinal, which is its last column. Its errors are data/unavailable, or sql/too-complex for a result that is too large.
func (c *Calculator) Compute(ctx context.Context, post sqlrewrite.Post) ([]sqlrewrite.PostRow, []string, error) {
	if len(post.Preconditions()) > 0 {
		return nil, nil, fault.Internal(errPins) // it reads tables, which this database does not have
	}
	if err := post.Prove(post.Proofs()); err != nil {
		return nil, nil, err
	}
	rows, types, err := compute(ctx, c.pool, post.SQL(), post.Args(), maxOf(post))
	if err != nil {
		return nil, nil, refused(post, err)
	}
	return rows, types, nil
}

// refused is the error of a query over nothing private.
func refused(post sqlrewrite.Post, err error) error {
	if errors.Is(err, errTooLarge) {
		return fault.TooComplex(fault.Position{}, fmt.Sprintf("the answer has more than %d MiB",
			maxOf(post)>>20)).WithHint("add LIMIT, or select less")
	}
	var server *pgconn.PgError
	if errors.As(err, &server) && server.Code == unknownZone && len(post.Zones()) > 0 {
		return fault.UnknownZone(post.Zones()[0])
	}
	return fault.DataUnavailable(quiet(err))
}

// maxResult caps the bytes of what is computed of released values, maxFree those of a free answer: joins and concatenations can make much
// of little.
const (
	maxResult = 64 << 20
	maxFree   = 8 << 20
)

func maxOf(post sqlrewrite.Post) int {
	if post.Free() {
		return maxFree
	}
	return maxResult
}

// querier is a connection or a pool.
type querier interface {
	Query(ctx context.Context, sql string, args ...any) (pgx.Rows, error)
}

// compute runs a text whose last column is an ordinal, and whose result has at most so many bytes. It has no name: what a connection
// remembered of it would tell, free, whether somebody asked for it before.
func compute(ctx context.Context, on querier, sql string, args []any, most int) ([]sqlrewrite.PostRow, []string, error) {
	result, err := on.Query(ctx, sql, append([]any{pgx.QueryExecModeDescribeExec, pgx.QueryResultFormats{pgx.TextFormatCode}}, args...)...)
	if err != nil {
		return nil, nil, err
	}
	defer result.Close()
	fields := result.FieldDescriptions()
	if len(fields) == 0 {
		result.Close()
		return nil, nil, firstError(result.Err(), errShape)
	}
	outputs := len(fields) - 1
	types := make([]string, outputs)
	for i := range types {
		if types[i], err = typeName(fields[i].DataTypeOID); err != nil {
			return nil, nil, err
		}
	}
	var rows []sqlrewrite.PostRow
	size := 0
	for result.Next() {
		raw := result.RawValues()
		for _, value := range raw {
			size += len(value)
		}
		if size > most {
			return nil, nil, errTooLarge // Close reads past the rest
		}
		ordinal := 0
		if raw[outputs] != nil {
			if ordinal, err = strconv.Atoi(string(raw[outputs])); err != nil || ordinal < 1 {
				return nil, nil, errShape
			}
		}
		row := sqlrewrite.PostRow{Values: make([]catalog.Key, outputs), Ordinal: ordinal}
		for i := range outputs {
			row.Values[i] = textOf(raw[i], fields[i].DataTypeOID)
		}
		rows = append(rows, row)
	}
	return rows, types, result.Err()
}

// textOf is the text that a cast to text would give; for booleans the protocol abbreviates it.
func textOf(raw []byte, oid uint32) catalog.Key {
	if raw == nil {
		return catalog.Key{Null: true}
	}
	if oid == pgtype.BoolOID {
		return catalog.Key{Text: strconv.FormatBool(string(raw) == "t")}
	}
	return catalog.Key{Text: string(raw)}
}

// typeName is PostgreSQL's name of a built-in type.
func typeName(oid uint32) (string, error) {
	switch oid {
	case pgtype.BoolOID:
		return "boolean", nil
	case pgtype.Int2OID:
		return "smallint", nil
	case pgtype.Int4OID:
		return "integer", nil
	case pgtype.Int8OID:
		return "bigint", nil
	case pgtype.NumericOID:
		return "numeric", nil
	case pgtype.Float4OID:
		return "real", nil
	case pgtype.Float8OID:
		return "double precision", nil
	case pgtype.TextOID, pgtype.VarcharOID, pgtype.UnknownOID:
		return "text", nil
	case pgtype.BPCharOID:
		return "character", nil
	case pgtype.DateOID:
		return "date", nil
	case pgtype.TimestampOID:
		return "timestamp without time zone", nil
	case pgtype.TimestamptzOID:
		return "timestamp with time zone", nil
	case pgtype.IntervalOID:
		return "interval", nil
	case pgtype.UUIDOID:
		return "uuid", nil
	case pgtype.Int2ArrayOID:
		return "smallint[]", nil
	case pgtype.Int4ArrayOID:
		return "integer[]", nil
	case pgtype.Int8ArrayOID:
		return "bigint[]", nil
	case pgtype.NumericArrayOID:
		return "numeric[]", nil
	case pgtype.Float4ArrayOID:
		return "real[]", nil
	case pgtype.Float8ArrayOID:
		return "double precision[]", nil
	default:
		return "", errType
	}
}
