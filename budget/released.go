package budget

import (
	"context"
	"errors"
	"time"

	"noisegate.example/internal/fault"
	"noisegate.example/mechanisms"
)

// Released is what a charge released: groups and noisy values, from which other questions about the same release are answered without
// another charge. It is an answer in another form, paid for and so public as far as privacy goes.
type Released struct {
	Charge   ReservationID // that paid for it
	Dataset  string
	Analyst  string   // who paid
	Shared   bool     // whether others may be given it: the policy said so when it was bought
	Identity [32]byte // of the release: of its block, its noise and the state of the data
	Values   []byte   // JSON, at most MaxReleased bytes; the ledger does not look into it
	Version  *Version // nil: it is of data that have no versions
	// Rho is positive for a vector: releases of a question, for analysts who ask it at another price. Its Identity is that of the question at
	// any price, it has at most MaxShared bytes, and a charge has one. The more ρ all its parts have together, the more accurate it is.
	Rho mechanisms.PicoRho
}

// Version names the version of refreshed data that a release was made from.
type Version struct {
	Series [32]byte  // what the same release has of each version
	AsOf   time.Time // the time of its rows
	Name   string    // the name for the state of the data
}

// MaxReleased and MaxShared bound the bytes of stored values, and of vectors.
const (
	MaxReleased = 4 << 20
	MaxShared   = 1 << 20
)

// Lookup asks for earlier releases of all that a question releases, by place.
type Lookup struct {
	Dataset, Analyst string
	// Identities has, for each release, the identities of the forms that answer, the best first.
	Identities [][][32]byte
	// Series has, for each release, the names of its forms in all versions of the data. Until bounds the time of the rows; with a zero time
	// each version answers.
	Series [][][32]byte
	Until  time.Time
	// Shared lets what another analyst bought while releases were shared do as well. It is set only where the policy says so.
	Shared bool
	// Questions has the names of one question at any price. Vectors are looked up where Shared is set.
	Questions [][32]byte
	// Accounts has what [Ledger.Caller] gives of them and of the analyst looked up as well, in the same exchange; nil: it is not.
	Accounts []AccountID
}

// Found is an earlier release, and when its charge was settled, or expired.
type Found struct {
	Released
	At time.Time
}

// Earlier has the results of a [Lookup], by place; nil where nothing was found.
type Earlier struct {
	Exact  []*Found // by identity
	Latest []*Found // by series: the latest version
	Best   *Found   // the most accurate vector of the question

	Balances []Balance // of the accounts that exist, in their order
	Failures int64     // of the analyst, within [FailurePeriod]
}

// ReleasedValues stores released values outside the ledger's chain. Implementations are safe for concurrent use by several processes.
//
// The charge for a release names what is released, whatever was found: values that are lost make the next question a charge, or a dearer
// one, values that were forged make its answer wrong; neither makes it less private.
type ReleasedValues interface {
	// KeepReleased takes what a charge that was reserved released, before the charge is settled, and stores it until the charge has ended.
	// A charge may release several things, each once. A vector is stored at once.
	KeepReleased(context.Context, Released) error
	// Find gives releases of charges that are settled or expired, so that they count as spent for good, in one exchange. It prefers the
	// latest version of a series, then the analyst's own charges, then the first name, then the oldest charge; of vectors the one with the
	// most ρ, then the oldest charge. It gives nothing of an open charge, which may still be voided.
	Find(context.Context, Lookup) (*Earlier, error)
}

// Check refuses what is not complete, or too long.
func (v Released) Check() error {
	if v.Charge == "" || v.Dataset == "" || v.Analyst == "" || len(v.Values) == 0 || len(v.Values) > MaxReleased || v.Rho < 0 ||
		v.Rho > 0 && len(v.Values) > MaxShared || v.Version != nil && (v.Version.AsOf.IsZero() || v.Version.Name == "") {
		return fault.Internal(errors.New("budget: released values are not complete, or too long"))
	}
	return nil
}
