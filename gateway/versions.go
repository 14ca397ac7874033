package gateway

import (
	"context"
	"slices"
	"time"

	"noisegate.example/api"
	"noisegate.example/budget"
	"noisegate.example/gateway/internal/amounts"
	"noisegate.example/sqlrewrite"
)

// A refresh of a prepared copy spends nothing: a question that was answered from an earlier version gets that answer again, until it asks
// for the latest one. Releases of all versions that are made alike, of one relation, are one series (sqlrewrite.EveryVersion).

// versionLatest in a request asks, and pays, for an answer from the version of a prepared copy that is there now, and from the tables where
// there is none, each time anew.
const versionLatest = "latest"

// seriesOf are what the releases of a question over a prepared copy are known by in each of its versions, by place in
// [sqlrewrite.Plan.Blocks]; nil where that is not known.
func seriesOf(q *prepared, asked *sqlrewrite.Plan) []released {
	if q.every == nil {
		return nil
	}
	plan, err := asked.On(q.every)
	if err != nil {
		return nil
	}
	series := releases(plan, "")
	if len(series) != len(q.released) {
		return nil
	}
	for i, r := range series {
		if len(r.identities) != len(q.released[i].identities) {
			return nil
		}
	}
	return series
}

// versionOf says of which version a release of a question is, by its place; nil: of none.
func (q *prepared) versionOf(place int) *budget.Version {
	if q.series == nil || len(q.series[place].identities) == 0 {
		return nil
	}
	return &budget.Version{Series: q.series[place].identities[0], AsOf: q.version.AsOf, Name: q.dataVersion}
}

// findEarlier looks up all that a question releases in the latest version of the prepared copy that has all of it, of those that were
// released: asked is the question, of which a part may be released of the version that is there now. It gives the youngest of what was
// found, and what is made of all; nil where there is no such version, or where no earlier one will do.
func (s *Service) findEarlier(ctx context.Context, q *prepared, asked *sqlrewrite.Plan) (youngest *budget.Found,
	whole *sqlrewrite.Released, err error) {
	if q.series = seriesOf(q, asked); q.series == nil || q.latest {
		return nil, nil, nil
	}
	all, err := s.ofOneVersion(ctx, q)
	if err != nil || all == nil {
		return nil, nil, err
	}
	values := make([]*sqlrewrite.Released, len(all))
	for i, found := range all {
		if found == nil {
			continue
		}
		if values[i], err = q.recalled(i, slices.Index(q.series[i].identities, found.Version.Series), found); err != nil {
			s.unreadable(ctx, found, err)
			return nil, nil, nil // it is asked anew, at its whole price
		}
		if youngest == nil || !found.At.Before(youngest.At) {
			youngest = found
		}
	}
	whole, _, err = together(asked, values)
	return youngest, whole, err
}

// ofOneVersion finds all releases of a question that are known by a series, by place, of the latest version that has all; nil: none has.
func (s *Service) ofOneVersion(ctx context.Context, q *prepared) ([]*budget.Found, error) {
	all := make([]*budget.Found, len(q.series))
	for until := (time.Time{}); ; {
		var oldest *budget.Version
		same := true
		for i, r := range q.series {
			if len(r.identities) == 0 {
				continue
			}
			found, err := s.lookUp(ctx, q, r.identities, func(ctx context.Context, e budget.Earlier) (*budget.Found, error) {
				return s.values.FindLatest(ctx, e, until)
			})
			if err != nil || found == nil {
				return nil, err
			}
			all[i] = found
			of := found.Version
			same = same && (oldest == nil || of.AsOf.Equal(oldest.AsOf) && of.Name == oldest.Name)
			if oldest == nil || of.AsOf.Before(oldest.AsOf) {
				oldest = of
			}
		}
		switch {
		case same && oldest != nil:
			return all, nil
		case oldest == nil, !until.IsZero() && !oldest.AsOf.Before(until): // no older one is left to try
			return nil, nil
		}
		until = oldest.AsOf
	}
}

// newer describes the version of a prepared copy that is there now, to whoever is answered from an earlier one: with what it costs to ask
// that one, where the policy would not refuse it, and whether the caller's own account pays that; nil where there is none.
func (q *prepared) newer(than *budget.Version, now time.Time) *api.Newer {
	if !q.asOf().After(than.AsOf) { // this gateway has not seen yet which version there is, or the newest is gone
		return nil
	}
	n := &api.Newer{DataVersion: q.dataVersion, AsOf: q.asOf().UTC()}
	if q.Refusal == nil {
		price := amounts.Of(q.Charge.Loss)
		affordable := amounts.Affordable(amounts.Released(q.Accounts.Own(), now), q.Charge.Loss)
		n.Price, n.Affordable = &price, &affordable
	}
	return n
}
