package gateway

import (
	"context"

	"noisegate.example/api"
	"noisegate.example/catalog"
	"noisegate.example/gateway/auth"
	"noisegate.example/sqlrewrite"
)

// Columns gives the columns of a question's answer without asking it: names, types and kinds. It costs nothing, needs no
// price and touches no row. With rows, a question for rows that are not shown has the columns that it would have. Only the
// dataset, the text and its dialect of the request count. Its errors are request/*, sql/*, policy/*, plan/* and
// budget/no-account.
func (s *Service) Columns(ctx context.Context, who auth.Principal, r api.QueryRequest, rows bool) ([]api.Column, error) {
	release, err := s.Enter(ctx, who)
	if err != nil {
		return nil, err
	}
	defer release()
	if r.SQL, err = BoundText(r); err != nil {
		return nil, err
	}
	snapshot, err := s.Snapshot(r.Dataset)
	if err != nil {
		return nil, err
	}
	if _, err := s.AccountsOf(ctx, who, snapshot); err != nil {
		return nil, err
	}
	o := sqlrewrite.Options{Now: s.clock.Now(), Zone: r.TimeZone, Mechanism: sqlrewrite.MechanismLaplace,
		Currency: catalog.Pure, Confidence: defaultConfidence}
	if err := readDialect(r, &o); err != nil {
		return nil, err
	}
	described, err := sqlrewrite.Describe(ctx, r.SQL, snapshot, o, rows)
	if err != nil {
		return nil, sqlrewrite.Suggest(ctx, err, r.SQL, snapshot, o)
	}
	columns := make([]api.Column, len(described))
	for i, c := range described {
		columns[i] = api.Column{Name: c.Name, Type: c.Type, Kind: string(c.Kind)}
	}
	return columns, nil
}
