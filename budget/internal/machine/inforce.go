package machine

import (
	"encoding/hex"
	"encoding/json"
	"slices"
	"time"

	"noisegate.example/budget"
	"noisegate.example/internal/fault"
)

// InForce is what a machine knows of the policies and keys of its dataset: only where an operation is about them.
type InForce struct {
	Rows    []budget.PolicyRow // stored versions, oldest first
	Entered bool               // there are entries of policies
	Keys    []byte             // the text of the newest entry of keys; nil: there is none
	TwoFor  []string           // of the newest entry of a policy: the kinds of changes that take two stewards
	Version int64              // of the newest entry of a policy; 0: there is none
	Ledger  string             // that signatures name; "": it is not known

	Added []AddedPolicy // to be written
}

// AddedPolicy is a version that is to be stored with an entry.
type AddedPolicy struct {
	budget.NewPolicy
	Line int // of Machine.Written
}

// policyRecord is a version of a policy as the journal keeps it.
type policyRecord struct {
	Version     int64             `json:"applies_policy_version"`
	Document    string            `json:"document_sha256"`
	Facts       string            `json:"facts_sha256"`
	Digest      string            `json:"digest"`
	DataVersion string            `json:"data_version,omitempty"`
	AppliedBy   string            `json:"applied_by"`
	AppliedAt   int64             `json:"applied_at_us"` // microseconds since 1970
	Protected   map[string]uint32 `json:"protected,omitempty"`
	Older       bool              `json:"older,omitempty"` // than entries of policies: it was stored without one
	TwoFor      []string          `json:"two_for,omitempty"`
	Needed      []string          `json:"two_needed_for,omitempty"`
	Approval    *approvalRecord   `json:"approval,omitempty"`
	RaisedBy    string            `json:"caps_raised_by,omitempty"` // missing in old entries
}

// approvalRecord is a second steward's signature as the journal keeps it. What it is over stands in the entry.
type approvalRecord struct {
	Proposer          string `json:"proposer"`
	Approver          string `json:"approver"`
	At                int64  `json:"signed_at"` // seconds since 1970
	Key               string `json:"key"`
	Signature         []byte `json:"signature"`
	ProposerKey       string `json:"proposer_key,omitempty"`
	ProposerSignature []byte `json:"proposer_signature,omitempty"`
	Ledger            string `json:"ledger,omitempty"` // missing in old entries
}

func approvalRecordOf(a *budget.Approval) *approvalRecord {
	if a == nil {
		return nil
	}
	return &approvalRecord{a.Proposer, a.Approver, a.At.Unix(), a.Key, a.Signature, a.ProposerKey, a.ProposerSignature,
		a.Ledger}
}

func (r *approvalRecord) approval() *budget.Approval {
	if r == nil {
		return nil
	}
	return &budget.Approval{Pair: budget.Pair{Proposer: r.Proposer, Approver: r.Approver}, At: time.Unix(r.At, 0).UTC(), Key: r.Key,
		Signature: r.Signature, ProposerKey: r.ProposerKey, ProposerSignature: r.ProposerSignature, Ledger: r.Ledger}
}

func policyText(v budget.PolicyVersion, older bool) []byte {
	return encoded(policyRecord{Version: v.Version, Document: hex.EncodeToString(v.Document[:]), Facts: hex.EncodeToString(v.Facts[:]),
		Digest: hex.EncodeToString(v.Digest[:]), DataVersion: v.DataVersion, AppliedBy: v.AppliedBy, AppliedAt: v.AppliedAt.UnixMicro(),
		Protected: v.Protected, Older: older, TwoFor: v.TwoFor, Needed: v.Needed, Approval: approvalRecordOf(v.Approval),
		RaisedBy: v.RaisedBy})
}

// PolicyOf reads a version of a policy; ok is false for an entry that is none.
func PolicyOf(e budget.Entry) (v budget.PolicyVersion, ok bool) {
	var r policyRecord
	if e.Kind != budget.EntryPolicy || !aboutNoAccount(e) || json.Unmarshal(e.AccountText, &r) != nil || r.Version < 1 || r.AppliedBy == "" {
		return v, false
	}
	v = budget.PolicyVersion{Dataset: e.Dataset, DataVersion: r.DataVersion, Protected: r.Protected, TwoFor: r.TwoFor, Needed: r.Needed,
		Approval: r.Approval.approval(),
		PolicyRow: budget.PolicyRow{Version: r.Version, AppliedBy: r.AppliedBy, AppliedAt: time.UnixMicro(r.AppliedAt).UTC(),
			RaisedBy: r.RaisedBy}}
	if !r.Older {
		v.Entry = e.Seq
	}
	for into, text := range map[*[32]byte]string{&v.Document: r.Document, &v.Facts: r.Facts, &v.Digest: r.Digest} {
		sum, err := hex.DecodeString(text)
		if err != nil || len(sum) != len(into) {
			return v, false
		}
		*into = [32]byte(sum)
	}
	return v, true
}

func aboutNoAccount(e budget.Entry) bool {
	return len(e.AccountIDs) == 0 && e.Reservation == "" && e.Loss.IsZero()
}

// RecordPolicy adds the next version of the policy.
func (m *Machine) RecordPolicy(p budget.NewPolicy) (time.Time, error) {
	newest := int64(0)
	if n := len(m.InForce.Rows); n > 0 {
		newest = m.InForce.Rows[n-1].Version
	}
	if p.Version != newest+1 {
		return time.Time{}, budget.ErrPolicyTaken
	}
	if p.Approval != nil {
		if err := p.Approval.Holds(m.Now); err != nil {
			return time.Time{}, err
		}
		if what := budget.OtherLedger(p.Approval.Ledger, m.InForce.Ledger); what != "" {
			return time.Time{}, fault.PolicySignature(what)
		}
	} else if what := WantsTwo(m.InForce.TwoFor, p.PolicyVersion); len(what) > 0 {
		return time.Time{}, fault.PolicySecondSteward(what)
	}
	p.AppliedAt, p.RaisedBy = m.Now, m.Raised
	switch {
	case p.Approval != nil: // an approval covers the whole text
		p.RaisedBy = ""
	case p.Raises && newest > 0:
		p.RaisedBy = p.AppliedBy
	}
	m.Raised = p.RaisedBy
	m.InForce.Added = append(m.InForce.Added, AddedPolicy{p, len(m.Written)})
	m.InForce.Rows, m.InForce.Entered, m.InForce.TwoFor = append(m.InForce.Rows, p.PolicyRow), true, p.TwoFor
	m.InForce.Version, m.Newest = p.Version, budget.Policy{Version: p.Version, Digest: p.Digest}
	m.write(budget.Entry{Kind: budget.EntryPolicy, AccountText: policyText(p.PolicyVersion, false)}, p.Dataset, p.AppliedBy, nil)
	return m.Now, nil
}

// WantsTwo is why a version takes two stewards, by the kinds that did before it: what it says of itself, and kinds that it leaves out.
func WantsTwo(before []string, v budget.PolicyVersion) (what []string) {
	what = slices.Clone(v.Needed)
	if slices.ContainsFunc(before, func(kind string) bool { return !slices.Contains(v.TwoFor, kind) }) && !slices.Contains(what, TwoFor) {
		what = append(what, TwoFor)
	}
	return what
}

// TwoFor is the change that leaves out kinds of changes which took two.
const TwoFor = "two_for"

// EnterPolicies writes entries of versions that are older than these, if all of them are given.
func (m *Machine) EnterPolicies(versions []budget.PolicyVersion) error {
	if m.InForce.Entered {
		return nil
	}
	if !slices.EqualFunc(versions, m.InForce.Rows, func(v budget.PolicyVersion, r budget.PolicyRow) bool {
		return v.Version == r.Version && v.Digest == r.Digest
	}) {
		return budget.ErrPolicyTaken
	}
	for i, v := range versions {
		v.PolicyRow = m.InForce.Rows[i]
		m.InForce.Version = v.Version
		m.write(budget.Entry{Kind: budget.EntryPolicy, AccountText: policyText(v, true)}, v.Dataset, v.AppliedBy, nil)
	}
	m.InForce.Entered = len(versions) > 0
	return nil
}

// freeRecord are free reads as the journal keeps them.
type freeRecord struct {
	Analyst string `json:"free_reads_of"`
	Day     string `json:"day"`
	Version int64  `json:"under_policy_version"`
	Reads   int64  `json:"reads"`
}

// RecordFreeReads writes down that public tables may be read so many times.
func (m *Machine) RecordFreeReads(r budget.FreeReads) {
	m.write(budget.Entry{Kind: budget.EntryFree, AccountText: encoded(freeRecord{r.Analyst, r.Day, r.Version, r.Reads})}, r.Dataset, r.Analyst,
		nil)
}

// FreeReadsOf reads free reads; ok is false for an entry that is none.
func FreeReadsOf(e budget.Entry) (r budget.FreeReads, ok bool) {
	var record freeRecord
	if e.Kind != budget.EntryFree || !aboutNoAccount(e) || json.Unmarshal(e.AccountText, &record) != nil || record.Analyst != e.Analyst {
		return r, false
	}
	r = budget.FreeReads{Dataset: e.Dataset, Analyst: record.Analyst, Day: record.Day, Version: record.Version, Reads: record.Reads}
	return r, r.Check() == nil
}

// keysRecord are keys as the journal keeps them.
type keysRecord struct {
	Stewards []string `json:"steward_keys"`
	Receipts string   `json:"receipt_key,omitempty"`
}

// RecordKeys writes down whose signatures count, unless that is known.
func (m *Machine) RecordKeys(k budget.SigningKeys) {
	text := encoded(keysRecord{append([]string{}, k.Stewards...), k.Receipts})
	before := m.InForce.Keys
	if before == nil {
		before = encoded(keysRecord{Stewards: []string{}})
	}
	if string(before) == string(text) {
		return
	}
	m.InForce.Keys = text
	m.write(budget.Entry{Kind: budget.EntryKeys, AccountText: text}, k.Dataset, budget.ByGateway, nil)
}

// KeysOf reads keys; ok is false for an entry that has none.
func KeysOf(e budget.Entry) (k budget.SigningKeys, ok bool) {
	var record keysRecord
	if e.Kind != budget.EntryKeys || !aboutNoAccount(e) || json.Unmarshal(e.AccountText, &record) != nil || record.Stewards == nil {
		return k, false
	}
	return budget.SigningKeys{Dataset: e.Dataset, Stewards: record.Stewards, Receipts: record.Receipts}, true
}

// InForceProblem says what is wrong with an entry about what is in force; "" for nothing, also of all other kinds.
func InForceProblem(e budget.Entry) string {
	ok := true
	switch e.Kind {
	case budget.EntryPolicy:
		_, ok = PolicyOf(e)
	case budget.EntryFree:
		_, ok = FreeReadsOf(e)
	case budget.EntryKeys:
		_, ok = KeysOf(e)
	default:
	}
	if !ok {
		return "it does not say what is in force"
	}
	return ""
}
