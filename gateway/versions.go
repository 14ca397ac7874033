package gateway

import (
	"context"
	"slices"
	"time"

	"noisegate.example/api"
	"noisegate.example/budget"
	"noisegate.example/gateway/internal/amounts"
)

// A refresh of a prepared copy spends nothing: a question that was answered from an earlier version gets that answer again, until it asks
// for the latest one. Releases of all versions that are made alike, of one relation, are one series (sqlrewrite.EveryVersion).

// versionLatest in a request asks, and pays, for an answer from the version of a prepared copy that is there now, and from the tables where
// there is none, each time anew.
const versionLatest = "latest"

// nameSeries adds to the releases of a question over a prepared copy what they are known by in each of its versions, unless that is not
// known of all.
func (q *prepared) nameSeries() {
	if q.every == nil {
		return
	}
	plan, err := q.plan.On(q.every)
	if err != nil {
		return
	}
	series := releases(plan, "")
	if !slices.EqualFunc(series, q.released, func(a, b released) bool { return len(a.identities) == len(b.identities) }) {
		return
	}
	for i, r := range series {
		q.released[i].series = r.identities
	}
}

// versionOf says of which version a release of a question is, by its place; nil: of none.
func (q *prepared) versionOf(place int) *budget.Version {
	if len(q.released[place].series) == 0 {
		return nil
	}
	return &budget.Version{Series: q.released[place].series[0], AsOf: q.version.AsOf, Name: q.dataVersion}
}

// ofOneVersion goes on from the latest versions of what is known by series, by place, to the latest one that has all; nil: none has.
func (s *Service) ofOneVersion(ctx context.Context, l budget.Lookup, latest []*budget.Found) ([]*budget.Found, error) {
	for {
		var oldest *budget.Version
		same := true
		for i, names := range l.Series {
			if len(names) == 0 {
				continue
			}
			if latest[i] == nil {
				return nil, nil
			}
			of := latest[i].Version
			same = same && (oldest == nil || of.AsOf.Equal(oldest.AsOf) && of.Name == oldest.Name)
			if oldest == nil || of.AsOf.Before(oldest.AsOf) {
				oldest = of
			}
		}
		switch {
		case same && oldest != nil:
			return latest, nil
		case oldest == nil, !l.Until.IsZero() && !oldest.AsOf.Before(l.Until): // no older one is left to try
			return nil, nil
		}
		l.Until = oldest.AsOf
		found, err := s.lookUp(ctx, l)
		if err != nil {
			return nil, err
		}
		latest = found.Latest
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
