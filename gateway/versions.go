package gateway

import (
	"time"

	"noisegate.example/api"
	"noisegate.example/budget"
	"noisegate.example/gateway/internal/amounts"
	"noisegate.example/gateway/released"
)

// A refresh of a prepared copy spends nothing: a question that was answered from an earlier version gets that answer again, until it asks
// for the latest one. Releases of one relation that are made in the same way in all versions are one series (sqlrewrite.EveryVersion).

// versionLatest in a request asks, and pays, for an answer from the version of a prepared copy that is there now, and from the tables where
// there is none, each time anew.
const versionLatest = "latest"

// nameSeries gives the releases of a question over a prepared copy their names in all versions of the copy.
func (q *prepared) nameSeries() {
	if q.every == nil {
		return
	}
	if every, err := q.plan.On(q.every); err == nil {
		released.NameSeries(q.released, every)
	}
}

// versionOf returns the version that a release of a question, by its place, was made from; nil: of none.
func (q *prepared) versionOf(place int) *budget.Version {
	if len(q.released[place].Series) == 0 {
		return nil
	}
	return &budget.Version{Series: q.released[place].Series[0], AsOf: q.version.AsOf, Name: q.dataVersion}
}

// newer describes the version of a prepared copy that is there now, for an answer from an earlier one. It has what it costs to ask that
// one, where the policy would not refuse it, and whether the caller's own account pays that. It is nil where there is none.
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
