package gateway

import (
	"context"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"math/big"
	"slices"
	"time"

	"noisegate.example/api"
	"noisegate.example/budget"
	"noisegate.example/catalog"
	"noisegate.example/gateway/auth"
	"noisegate.example/gateway/internal/amounts"
	"noisegate.example/internal/fault"
	"noisegate.example/mechanisms"
)

// Datasets lists what analysts may ask about: datasets that have a policy in force. Stewards are told which have none yet.
func (s *Service) Datasets(who auth.Principal) (*api.DatasetList, error) {
	list := &api.DatasetList{Datasets: []api.Dataset{}}
	for _, name := range slices.Sorted(maps.Keys(s.datasets)) {
		dataset, err := s.Dataset(name)
		switch code := fault.CodeOf(err); code {
		case "":
			list.Datasets = append(list.Datasets, *dataset)
		case fault.CodeUnknownDataset: // answers no query yet
			if who.Has(auth.Steward) {
				list.WithoutPolicy = append(list.WithoutPolicy, name)
			}
		case fault.CodePolicyStale: // answers no query now
		default:
			return nil, err
		}
	}
	return list, nil
}

// Dataset describes one dataset by its policy alone. Hidden columns are left out.
func (s *Service) Dataset(name string) (*api.Dataset, error) {
	snapshot, err := s.Snapshot(name)
	if err != nil {
		return nil, err
	}
	d := &api.Dataset{Name: snapshot.Dataset, Version: snapshot.Version, Tables: []api.Table{}}
	for _, t := range snapshot.Shown() {
		d.Tables = append(d.Tables, tableOf(t))
	}
	return d, nil
}

func tableOf(t *catalog.Table) api.Table {
	table := api.Table{Schema: t.Schema, Name: t.Name, Public: t.Public, Columns: []api.TableColumn{}}
	switch t.Unit.Kind {
	case catalog.RowUnit:
		table.Unit = &api.Unit{Kind: "row", Column: t.Unit.Column}
	case catalog.ColumnUnit:
		table.Unit = &api.Unit{Kind: "column", Column: t.Unit.Column}
	case catalog.PathUnit:
		table.Unit = &api.Unit{Kind: "path", Column: t.Unit.Column, To: t.Unit.ToSchema + "." + t.Unit.ToTable}
	case catalog.NoUnit:
	}
	if table.Unit != nil {
		table.Unit.Of, table.NotCovered = t.Unit.Of, t.NotCovered
		table.MaxRows, table.MaxGroups, table.MaxValues, table.MaxRowsTotal = t.MaxRows, t.MaxGroups, t.MaxValues, t.MaxTotal
	}
	for _, c := range t.Columns {
		if c.Exposed {
			table.Columns = append(table.Columns, columnOf(c))
		}
	}
	return table
}

func columnOf(c *catalog.Column) api.TableColumn {
	column := api.TableColumn{Name: c.Name, Type: string(c.Type), Bounds: boundsOf(c)}
	switch {
	case c.PrivateKeys:
		column.Keys = "private"
	case c.Domain != nil:
		column.Keys = "public"
	}
	for _, key := range c.Domain {
		if key.Null {
			column.Domain = append(column.Domain, nil)
		} else {
			column.Domain = append(column.Domain, &key.Text)
		}
	}
	return column
}

// boundsOf writes bounds in the column's own terms: dates and times, which the catalog holds as numbers, in ISO form.
func boundsOf(c *catalog.Column) *api.ColumnBounds {
	if c.Bounds == nil {
		return nil
	}
	text := rationalText
	switch c.Type {
	case catalog.Date:
		text = func(r *big.Rat) string { return time.Unix(86400*whole(r), 0).UTC().Format(time.DateOnly) }
	case catalog.Timestamp:
		text = func(r *big.Rat) string { return time.UnixMicro(whole(r)).UTC().Format("2006-01-02T15:04:05.999999") }
	case catalog.Timestamptz:
		text = func(r *big.Rat) string {
			return time.UnixMicro(whole(r)).UTC().Format("2006-01-02T15:04:05.999999Z07:00")
		}
	default:
	}
	bounds := &api.ColumnBounds{Lo: text(c.Bounds.Lo), Hi: text(c.Bounds.Hi)}
	if c.Bounds.Step != nil {
		bounds.Step = rationalText(c.Bounds.Step)
	}
	return bounds
}

// whole is the integer part of a number of days or microseconds.
func whole(r *big.Rat) int64 { return new(big.Int).Quo(r.Num(), r.Denom()).Int64() }

func hexText(digest [32]byte) string { return hex.EncodeToString(digest[:]) }

// Budget gives the caller's own budget: for one dataset, or for all in which there is one when dataset is empty.
func (s *Service) Budget(ctx context.Context, who auth.Principal, dataset string) (*api.BudgetResponse, error) {
	release, err := s.EnterList(ctx, who)
	if err != nil {
		return nil, err
	}
	defer release()
	if dataset != "" {
		one, err := s.datasetBudget(ctx, who, dataset)
		if err != nil {
			return nil, err
		}
		return &api.BudgetResponse{Budgets: []api.DatasetBudget{*one}}, nil
	}
	all := &api.BudgetResponse{Budgets: []api.DatasetBudget{}}
	for _, name := range slices.Sorted(maps.Keys(s.datasets)) {
		one, err := s.datasetBudget(ctx, who, name)
		switch code := fault.CodeOf(err); code {
		case "":
			all.Budgets = append(all.Budgets, *one)
		case fault.CodeBudgetNoAccount, fault.CodeUnknownDataset, fault.CodePolicyStale: // nothing to spend there now
		default:
			return nil, err
		}
	}
	return all, nil
}

func (s *Service) datasetBudget(ctx context.Context, who auth.Principal, dataset string) (*api.DatasetBudget, error) {
	snapshot, err := s.Snapshot(dataset)
	if err != nil {
		return nil, err
	}
	accounts, err := s.AccountsOf(ctx, who, snapshot)
	if err != nil {
		return nil, err
	}
	own, now := accounts.Own(), s.clock.Now()
	shared := []api.SharedAccount{}
	for i, b := range accounts.balances {
		if i != accounts.own {
			shared = append(shared, amounts.Shared(b.Account))
		}
	}
	released := amounts.Released(own, now)
	return &api.DatasetBudget{
		Dataset: dataset, Account: own.ID.String(), Limit: amounts.Limit(own.Limit),
		Spent: amounts.Sums(own.Spent), Reserved: amounts.Sums(own.Reserved), Remaining: amounts.Headroom(released),
		Lifetime: amounts.Sums(own.Spent), Usage: amounts.Usage(released), Frozen: own.Frozen, NextTranche: nextTranche(own, now),
		Shared: shared, Advice: advice(own, now),
	}, nil
}

// advice says in plain words how far a balance reaches: in counts of one group at ε 0.1, or less where one query may not
// cost that much.
func advice(own budget.Balance, now time.Time) string {
	switch {
	case own.Limit.ReplayOnly:
		return "only answers that exist already"
	case own.Frozen:
		return "frozen by a steward: only answers that exist already"
	}
	epsilon := smallPrice(own.Limit)
	text := fmt.Sprintf("about %d more counts at epsilon %s", own.Counts(epsilon, now), epsilon)
	if at := nextTranche(own, now); at != nil {
		text += ", and more from " + at.Format(time.DateTime) + " UTC"
	}
	return text
}

// releasesPerPage is the length of a page of history.
const releasesPerPage = 50

// Releases lists the caller's own past answers, newest first. The cursor is "" or what the page before gave.
func (s *Service) Releases(ctx context.Context, who auth.Principal, cursor string) (*api.ReleaseList, error) {
	release, err := s.EnterList(ctx, who)
	if err != nil {
		return nil, err
	}
	defer release()
	// A cursor is a release of the caller's: a number of the ledger would count what others were charged.
	if cursor != "" {
		if _, err := s.ledger.Release(ctx, who.Subject, budget.ReservationID(cursor)); fault.CodeOf(err) == fault.CodeBudgetUnknownRelease {
			return nil, fault.RequestCursor()
		} else if err != nil {
			return nil, err
		}
	}
	// one more shows whether there is a next page
	infos, err := s.ledger.Releases(ctx, who.Subject, budget.ReservationID(cursor), releasesPerPage+1)
	if err != nil {
		return nil, err
	}
	list := &api.ReleaseList{Releases: []api.ReleaseSummary{}}
	if len(infos) > releasesPerPage {
		infos = infos[:releasesPerPage]
		list.NextCursor = string(infos[releasesPerPage-1].ID)
	}
	for _, info := range infos {
		summary, err := summaryOf(info.ID, info.Dataset, info.Request, info.Loss, info.SettledAt)
		if err != nil {
			return nil, err
		}
		list.Releases = append(list.Releases, summary)
	}
	return list, nil
}

// Release gives one of the caller's own past answers. What belongs to others does not exist.
func (s *Service) Release(ctx context.Context, who auth.Principal, id string) (*api.Release, error) {
	leave, err := s.EnterList(ctx, who)
	if err != nil {
		return nil, err
	}
	defer leave()
	stored, err := s.ledger.Release(ctx, who.Subject, budget.ReservationID(id))
	if err != nil {
		return nil, err
	}
	release := new(api.Release)
	if release.ReleaseSummary, err = summaryOf(stored.ID, stored.Dataset, stored.Request, stored.Loss, stored.SettledAt); err != nil {
		return nil, err
	}
	if err := json.Unmarshal(stored.Answer, &release.Result); err != nil {
		return nil, fault.Internal(err)
	}
	release.Useful = judged(&release.Result)
	return release, nil
}

func summaryOf(id budget.ReservationID, dataset string, request json.RawMessage, cost mechanisms.Loss,
	at time.Time) (api.ReleaseSummary, error) {
	summary := api.ReleaseSummary{ReleaseID: string(id), Dataset: dataset, Cost: amounts.Of(cost), At: at.UTC()}
	var other *json.UnmarshalTypeError // the version of an ensemble, of a request for labels, is a number: it is left out as all of these are
	if err := json.Unmarshal(request, &summary.Request); err != nil && !(errors.As(err, &other) && other.Field == "version") {
		return api.ReleaseSummary{}, fault.Internal(err)
	}
	return summary, nil
}
