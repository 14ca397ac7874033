package budget

import (
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"noisegate.example/internal/fault"
)

// ForCaps is the kind of change, of those for which a policy wants two stewards, that the ledger decides itself: an account that gets
// more, or is opened, by a steward.
const ForCaps = "cap"

// ForBounds is the kind that a gateway decides itself where it is about no policy: how many teachers of an ensemble a person is in.
const ForBounds = "bounds"

// Pair are the two stewards of a change that takes two: who wants it, and who signs it as the second. They are known by the subjects of
// their tokens, and their keys are named in the gateway's configuration: no policy and no token names an approver.
type Pair struct{ Proposer, Approver string }

// problem is what is wrong with a pair: one person in both places, or nobody in one; "" for nothing.
func (p Pair) problem() string {
	if p.Proposer == "" || p.Approver == "" || p.Proposer == p.Approver {
		return "two stewards are needed: one who proposes, and another who signs"
	}
	return ""
}

func (p Pair) lines() [][2]string {
	if p == (Pair{}) {
		return nil
	}
	return [][2]string{{"proposer", quoted(p.Proposer)}, {"approver", quoted(p.Approver)}}
}

// NoLedger is what signatures name where a dataset has no entry of keys or of a policy yet.
const NoLedger = "none"

// LedgerName is what signatures name of a dataset's ledger, so that they hold on no other one that has the same names and numbers: the
// hash of its first entry of keys or of a policy. Such entries stay when others are archived. It is "" for an entry that names none.
func LedgerName(e Entry) string {
	if e.Kind != EntryKeys && e.Kind != EntryPolicy || e.Hash == [32]byte{} {
		return ""
	}
	return hex.EncodeToString(e.Hash[:])
}

// OtherLedger is what is wrong with a signature that names a ledger, on another one; "" for nothing.
func OtherLedger(named, ledger string) string {
	switch named {
	case ledger:
		return ""
	case "":
		return "it names no ledger: sign it with the program of this version"
	default:
		return "it was signed for another ledger, or before this one said whose signatures count"
	}
}

// ledgerLine says which ledger a signature is for. Signatures of before named none: their texts have other titles.
func ledgerLine(named string) [][2]string {
	if named == "" {
		return nil
	}
	return [][2]string{{"ledger", quoted(named)}}
}

// titled is the title of what is signed, with the version of its text.
func titled(what, named string) string {
	version := 1
	if named != "" {
		version = 2
	}
	return fmt.Sprintf("noisegate %s/%d", what, version)
}

// Approval is a second steward's signature under the next version of a policy.
type Approval struct {
	Pair
	Ledger    string    // that it is for, by its [LedgerName] or [NoLedger]; "": it is older than such names
	At        time.Time // when it was signed, whole seconds
	Key       string    // which public key checks it: see journal.KeyID
	Signature []byte    // Ed25519, by the approver, over [PolicyChange.Text]
	// ProposerKey and ProposerSignature are the proposer's, over the same text; empty: a gateway took their token for it.
	ProposerKey       string
	ProposerSignature []byte
}

// PolicyChange is what stewards sign of a change of a policy. A version follows one other only, so that a signature holds for one change.
type PolicyChange struct {
	Dataset  string
	Replaces int64    // the version that is replaced
	Document [32]byte // SHA-256 of the new text
	Approval *Approval
}

// Text is what both stewards sign: lines that people can read, the same for the same change and for no other. The change has an approval.
func (c PolicyChange) Text() []byte {
	return signedText(titled("policy", c.Approval.Ledger), slices.Concat(ledgerLine(c.Approval.Ledger), [][2]string{
		{"dataset", quoted(c.Dataset)},
		{"replaces version", fmt.Sprint(c.Replaces)},
		{"sha256 of the new text", hex.EncodeToString(c.Document[:])},
	}, c.Approval.lines(), signedAt(c.Approval.At)))
}

// Holds makes sure that an approval is of two people, and of now. That its signatures are theirs is for journal.StewardKeys.
func (a Approval) Holds(now time.Time) error {
	what := a.problem()
	if what == "" && outdated(now.Sub(a.At)) {
		what = tooOld
	}
	if what == "" {
		return nil
	}
	return fault.PolicySignature(what)
}

// LimitChange sets a limit, or opens an account, with a second steward's signature.
type LimitChange struct {
	Account Account // its limit is the one afterwards
	Before  *Limit  // nil: nobody has the account yet, or its limit is of an older policy than the newest
	Mandate Mandate
}

// Check refuses a change of no account, and one that nobody signed as the second.
func (c LimitChange) Check(by string) error {
	if err := c.Account.Check(by); err != nil {
		return err
	}
	if c.Account.Origin != FromSteward {
		return fault.Internal(errors.New("budget: only stewards sign changes of limits"))
	}
	return c.Mandate.by(by)
}

// by makes sure that who makes a change is who proposed it, and another signed.
func (m Mandate) by(who string) error {
	if what := m.Pair.problem(); what != "" {
		return fault.BudgetSignature(what)
	}
	if m.Pair.Proposer != who {
		return fault.BudgetSignature(signedForAnother)
	}
	return nil
}

const signedForAnother = "it was signed for a change that somebody else proposes"

// ByTwo makes sure that a mandate (nil: there is none) is a second steward's, for a change that somebody makes.
func (m *Mandate) ByTwo(who string) error {
	if m == nil || m.Pair == (Pair{}) {
		return fault.BudgetSecondSteward()
	}
	return m.by(who)
}

// Text is what the second steward signs: lines that people can read, the same for the same change and for no other.
func (c LimitChange) Text() []byte {
	before := "none"
	if c.Before != nil {
		before = c.Before.text()
	}
	return signedText(titled("limit", c.Mandate.Ledger), slices.Concat(ledgerLine(c.Mandate.Ledger), [][2]string{
		{"dataset", quoted(c.Account.ID.Dataset)},
		{"account", quoted(c.Account.ID.String())},
		{"number of the change", fmt.Sprint(c.Mandate.Number)},
		{"limit before", before},
		{"limit afterwards", c.Account.Limit.text()},
	}, c.Mandate.lifetimeLines(), c.Mandate.Pair.lines(), signedAt(c.Mandate.At)))
}

// text is the limit on one line, with all that is declared of it: the rest follows. What is not there is left out, so that what was signed
// reads the same in programs whose limits say more.
func (l Limit) text() string {
	parts := []string{string(l.Form)}
	add := func(there bool, what, amount string) {
		if there {
			parts = append(parts, what+" "+amount)
		}
	}
	add(l.Form != ZCDP, "epsilon", l.Epsilon.String())
	add(l.Form == ZCDP, "rho", l.Rho.String())
	add(l.TotalDelta != 0, "delta", l.TotalDelta.String())
	add(l.PerQuery != 0, "each question at most epsilon", l.PerQuery.String())
	add(l.Tranche != Tranche{} && l.Form != ZCDP, "released each "+l.Tranche.Every.String()+" epsilon", l.Tranche.Epsilon.String())
	add(l.Tranche != Tranche{} && l.Form == ZCDP, "released each "+l.Tranche.Every.String()+" rho", l.Tranche.Rho.String())
	add(l.Rate != Rate{}, "within "+l.Rate.Per.String()+" at most epsilon", l.Rate.Epsilon.String())
	if l.ReplayOnly {
		parts = append(parts, "replays only")
	}
	return strings.Join(parts, ", ")
}

// Loosens reports whether a limit lets an account do anything that another one does not: its amounts are higher, or something else is not
// as it was and no further restriction.
func (l Limit) Loosens(old Limit) bool {
	rest := l
	rest.Epsilon, rest.Rho, rest.Delta, rest.TotalDelta = old.Epsilon, old.Rho, old.Delta, old.TotalDelta
	if old.PerQuery == 0 || l.PerQuery > 0 && l.PerQuery <= old.PerQuery && l.PerQueryRho <= old.PerQueryRho {
		rest.PerQuery, rest.PerQueryRho = old.PerQuery, old.PerQueryRho
	}
	if !old.ReplayOnly {
		rest.ReplayOnly = false
	}
	if old.Tranche == (Tranche{}) {
		rest.Tranche = Tranche{}
	}
	if old.Rate == (Rate{}) {
		rest.Rate = Rate{}
	}
	return l.Raises(old) || rest != old
}

// signedText is what a key signs: a title, and what it is about.
func signedText(title string, lines [][2]string) []byte {
	var b strings.Builder
	b.WriteString(title + "\n")
	for _, line := range lines {
		b.WriteString(line[0] + ": " + line[1] + "\n")
	}
	return []byte(b.String())
}

func signedAt(at time.Time) [][2]string {
	return [][2]string{{"signed at", at.UTC().Format(time.RFC3339)}}
}

// quoted is a text on one line, whatever it is.
func quoted(text string) string {
	q, err := json.Marshal(text)
	if err != nil {
		panic(err) // strings always encode
	}
	return string(q)
}
