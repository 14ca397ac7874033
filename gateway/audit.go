package gateway

import (
	"context"
	"encoding/base64"
	"encoding/hex"
	"errors"
	"io"
	"maps"
	"slices"
	"strconv"
	"time"

	"noisegate.example/api"
	"noisegate.example/budget"
	"noisegate.example/budget/journal"
	"noisegate.example/gateway/auth"
	"noisegate.example/gateway/internal/amounts"
	"noisegate.example/internal/fault"
	"noisegate.example/mechanisms"
)

// entriesPerPage is the length of a page of the journal.
const entriesPerPage = 500

// requestsPerPage is about how many bytes of requests a page of the journal has: one has up to 64 KiB, and six times that as JSON.
const requestsPerPage = 4 << 20

// JournalPage names a page of the ledger's journal.
type JournalPage struct {
	Dataset  string // "" for all
	Cursor   string // what the page before gave; "" for the first
	Requests bool   // with what was asked
}

// Verify reads the ledger of a dataset again, for stewards. A dataset whose ledger is broken takes no charge from then on. It may take a
// minute, which no list waits for.
func (s *Service) Verify(ctx context.Context, who auth.Principal, dataset string) (*api.Verification, error) {
	release, err := s.Enter(ctx, who)
	if err != nil {
		return nil, err
	}
	defer release()
	if _, ok := s.datasets[dataset]; !ok {
		return nil, fault.UnknownDataset(dataset)
	}
	read, err := s.ledger.Verify(ctx, budget.Head{Dataset: dataset})
	var broken *journal.BrokenError
	if errors.As(err, &broken) {
		return &api.Verification{ChainHead: api.ChainHead{Dataset: dataset}, Broken: broken.Error()}, nil
	}
	if err != nil {
		return nil, err
	}
	ledger, err := s.chain.LedgerName(ctx, dataset)
	if err != nil {
		return nil, err
	}
	return &api.Verification{ChainHead: api.ChainHead{Dataset: dataset, Seq: read.Head.Seq, Hash: hexText(read.Head.Hash), Ledger: ledger},
		Entries: read.Entries, Unchained: read.Unchained}, nil
}

// Audit lists the ledger's journal for stewards, newest first. The heads are those before the entries were read, so that none of the
// first page's can be missing.
func (s *Service) Audit(ctx context.Context, who auth.Principal, of JournalPage) (*api.AuditPage, error) {
	dataset, cursor := of.Dataset, of.Cursor
	release, err := s.EnterList(ctx, who)
	if err != nil {
		return nil, err
	}
	defer release()
	datasets := slices.Sorted(maps.Keys(s.datasets))
	if dataset != "" {
		if _, ok := s.datasets[dataset]; !ok {
			return nil, fault.UnknownDataset(dataset)
		}
		datasets = []string{dataset}
	}
	page := budget.Page{Limit: entriesPerPage + 1, Dataset: dataset} // one more shows whether there is a next page
	if cursor != "" {
		before, err := strconv.ParseInt(cursor, 10, 64)
		if err != nil || before < 1 {
			return nil, fault.RequestCursor()
		}
		page.Before = before
	}
	shown := &api.AuditPage{Entries: []api.AuditEntry{}, Heads: []api.ChainHead{}}
	for _, name := range datasets {
		now, policies, err := s.stateNow(ctx, name)
		if err != nil {
			return nil, err
		}
		head, err := s.chainHead(ctx, now)
		if err != nil {
			return nil, err
		}
		shown.Heads = append(shown.Heads, head)
		if cursor == "" {
			shown.Policies = append(shown.Policies, policies...)
		}
	}
	entries, err := s.ledger.Entries(ctx, page)
	if err != nil {
		return nil, err
	}
	if len(entries) > entriesPerPage {
		entries = entries[:entriesPerPage]
		shown.NextCursor = strconv.FormatInt(entries[entriesPerPage-1].Seq, 10)
	}
	for _, e := range entries {
		shown.Entries = append(shown.Entries, s.entryOf(e))
	}
	if of.Requests {
		err = s.addRequests(ctx, shown)
	}
	return shown, err
}

// Export writes the ledger's journal for stewards, oldest first and dataset by dataset ("" for all), as [api.ExportEnd] says. Entries that
// come meanwhile are left out. An error leaves lines without their end, which nobody takes for an export.
func (s *Service) Export(ctx context.Context, who auth.Principal, dataset string, to io.Writer) error {
	release, err := s.EnterList(ctx, who)
	if err != nil {
		return err
	}
	defer release()
	datasets := slices.Sorted(maps.Keys(s.datasets))
	if dataset != "" {
		if _, ok := s.datasets[dataset]; !ok {
			return fault.UnknownDataset(dataset)
		}
		datasets = []string{dataset}
	}
	end := api.ExportEnd{Heads: []api.ChainHead{}, Policies: []api.StoredPolicy{}}
	for _, name := range datasets {
		stored, err := s.ledger.Tables(ctx, name)
		if err != nil {
			return err
		}
		head, err := s.chainHead(ctx, stored.Head)
		if err != nil {
			return err
		}
		end.Heads, end.Policies = append(end.Heads, head), append(end.Policies, policiesOf(name, stored.Policies)...)
		if stored.State != nil {
			end.Tables = append(end.Tables, api.StoredTables{Dataset: name, State: stored.State, Archived: string(stored.Archived)})
		}
	}
	w := journal.NewExportWriter(to, s.signer)
	for _, head := range end.Heads {
		for page := (budget.Page{Forward: true, Limit: entriesPerPage, Dataset: head.Dataset}); page.After < head.Seq; {
			entries, err := s.ledger.Entries(ctx, page)
			if err != nil {
				return err
			}
			for _, e := range entries {
				if e.Seq > head.Seq {
					break
				}
				if err := w.Add(s.entryOf(e)); err != nil {
					return err
				}
			}
			if len(entries) < entriesPerPage { // a ledger that lost its end: the reader sees that
				break
			}
			page.After = entries[len(entries)-1].Seq
		}
	}
	if err := w.Add(end); err != nil {
		return err
	}
	return w.Close()
}

// chainHead is the end of a dataset's chain as stewards see it.
func (s *Service) chainHead(ctx context.Context, head budget.Head) (api.ChainHead, error) {
	ledger, err := s.chain.LedgerName(ctx, head.Dataset)
	return api.ChainHead{Dataset: head.Dataset, Seq: head.Seq, Hash: hexText(head.Hash), Ledger: ledger}, err
}

func policiesOf(dataset string, rows []budget.PolicyRow) (stored []api.StoredPolicy) {
	for _, v := range rows {
		stored = append(stored, api.StoredPolicy{Dataset: dataset, Version: v.Version, Document: hexText(v.Document),
			Facts: hexText(v.Facts), Digest: hexText(v.Digest), AppliedBy: v.AppliedBy, AppliedAt: v.AppliedAt, Entry: v.Entry,
			RaisedBy: v.RaisedBy})
	}
	return stored
}

// addRequests adds what was asked to the entries of a page with which a charge begins. The page ends where it has [requestsPerPage].
func (s *Service) addRequests(ctx context.Context, page *api.AuditPage) error {
	var ids []budget.ReservationID
	var at []int
	for i, e := range page.Entries {
		if e.Kind == string(budget.EntryReserve) {
			ids, at = append(ids, budget.ReservationID(e.ReleaseID)), append(at, i)
		}
	}
	if len(ids) == 0 {
		return nil
	}
	asked, err := s.ledger.Requests(ctx, ids, requestsPerPage)
	if err != nil {
		return err
	}
	for i, request := range asked {
		page.Entries[at[i]].Request = request
	}
	if len(asked) < len(ids) { // at least one was given
		page.Entries = page.Entries[:at[len(asked)]]
		page.NextCursor = strconv.FormatInt(page.Entries[len(page.Entries)-1].Seq, 10)
	}
	return nil
}

// stateNow is the end of a dataset's chain, and the versions of its policy that were stored then: it looks again while
// somebody applies one.
func (s *Service) stateNow(ctx context.Context, dataset string) (head budget.Head, stored []api.StoredPolicy, err error) {
	for {
		before, err := s.chain.PolicyRows(ctx, dataset)
		if err != nil {
			return head, nil, err
		}
		if head, err = s.headNow(ctx, dataset); err != nil {
			return head, nil, err
		}
		after, err := s.chain.PolicyRows(ctx, dataset)
		if err != nil {
			return head, nil, err
		}
		if slices.Equal(before, after) {
			return head, policiesOf(dataset, after), nil
		}
	}
}

// headNow is the end of a dataset's chain, whichever gateway wrote it: what this process knows may be a minute old. Of
// the two the later one, so that a journal that lost its end does not hide it.
func (s *Service) headNow(ctx context.Context, dataset string) (budget.Head, error) {
	known, err := s.ledger.Head(ctx, dataset)
	if err != nil {
		return budget.Head{}, err
	}
	newest, err := s.ledger.Entries(ctx, budget.Page{Limit: 1, Dataset: dataset})
	if err != nil {
		return budget.Head{}, err
	}
	if len(newest) == 1 && newest[0].Seq > known.Seq {
		return budget.Head{Dataset: dataset, Seq: newest[0].Seq, Hash: newest[0].Hash}, nil
	}
	return known, nil
}

func (s *Service) entryOf(e budget.Entry) api.AuditEntry {
	shown := api.AuditEntry{
		Seq: e.Seq, At: e.At, Kind: string(e.Kind), Dataset: e.Dataset, Subject: e.Analyst, ReleaseID: string(e.Reservation),
		AccountIDs: append([]int64{}, e.AccountIDs...), Amounts: amounts.Sums(e.Loss), Digest: hex.EncodeToString(e.Digest),
		Mechanisms: string(e.MechanismText), Account: string(e.AccountText),
	}
	if e.Account != nil {
		shown.AccountName = e.Account.String()
	}
	if e.Limit != nil {
		shown.Limit = new(amounts.Limit(*e.Limit))
	}
	if e.Shared != nil {
		shown.Shared = new(amounts.Sums(*e.Shared))
	}
	if e.Hash != [32]byte{} {
		shown.Hash = hexText(e.Hash)
	}
	if s.signer != nil && e.Kind == budget.EntrySettle {
		receipts := s.signer.Shown(e)
		shown.ReceiptHead, shown.ReceiptOpening = hexText(receipts.Head), hexText(receipts.Opening)
	}
	return shown
}

// Refill raises the cap of an account that exists. The journal says who did it and why, and keeps the signature, which
// is needed where the dataset has keys of stewards.
func (s *Service) Refill(ctx context.Context, who auth.Principal, dataset, name string, r api.Refill) (*api.Account, error) {
	id, err := s.accountID(dataset, name)
	if err != nil {
		return nil, err
	}
	refill := budget.Refill{Account: id, Reason: r.Reason}
	for _, amount := range []struct {
		name string
		text api.Decimal
		read func(string) error
	}{
		{"epsilon", r.Epsilon, func(text string) (err error) { refill.Epsilon, err = mechanisms.ParseEpsilon(text); return err }},
		{"rho", r.Rho, func(text string) (err error) { refill.Rho, err = mechanisms.ParseRho(text); return err }},
		{"delta", r.Delta, func(text string) (err error) { refill.Delta, err = mechanisms.ParseDelta(text); return err }},
	} {
		if amount.text == "" {
			continue
		}
		if err := amount.read(string(amount.text)); err != nil {
			return nil, fault.RequestBudget(amount.name + " is " + err.Error())
		}
	}
	if refill.Mandate, err = mandateOf(r.Signature); err != nil {
		return nil, err
	}
	if err := s.writeDue(ctx, id); err != nil {
		return nil, err
	}
	byTwo := refill.Mandate.ByTwo(who.Subject) == nil
	switch keys := s.Stewards(dataset); {
	case owns(who, id) && !byTwo:
		err = fault.AuthOwnAccount()
	case refill.Mandate != nil && refill.Mandate.Pair != (budget.Pair{}) && !byTwo:
		err = refill.Mandate.ByTwo(who.Subject)
	case keys != nil:
		err = keys.Check(refill)
	case refill.Mandate != nil: // nobody could say whether it holds
		err = fault.RequestBudget("this dataset has no keys of stewards, and takes refills without a signature")
	}
	if err != nil {
		return nil, err
	}
	if err := s.ledger.Refill(ctx, who.Subject, refill); err != nil {
		return nil, err
	}
	return s.Account(ctx, dataset, name)
}

// mandateOf reads a signature; nil for none.
func mandateOf(signature *api.RefillSignature) (*budget.Mandate, error) {
	if signature == nil {
		return nil, nil
	}
	m := &budget.Mandate{Number: signature.Number, At: signature.SignedAt.UTC().Truncate(time.Second), Key: signature.Key,
		Ledger: signature.Ledger, Pair: budget.Pair{Proposer: signature.Proposer, Approver: signature.Approver}}
	var epsilonErr, deltaErr, textErr error
	if m.Lifetime.Bounded = signature.Lifetime.Epsilon != ""; m.Lifetime.Bounded {
		m.Lifetime.Epsilon, epsilonErr = mechanisms.ParseEpsilon(string(signature.Lifetime.Epsilon))
	}
	m.Lifetime.Delta, deltaErr = mechanisms.ParseDelta(string(signature.Lifetime.Delta))
	m.Signature, textErr = base64.StdEncoding.DecodeString(signature.Signature)
	if err := errors.Join(epsilonErr, deltaErr, textErr); err != nil {
		return nil, fault.RequestBudget("the signature cannot be read").WithCause(err)
	}
	return m, nil
}

// ResetFailures lets an analyst's failures on a dataset until now count no more; the journal says who did it.
func (s *Service) ResetFailures(ctx context.Context, who auth.Principal, dataset, name string) (*api.Failures, error) {
	id, err := s.accountID(dataset, name)
	if err != nil {
		return nil, err
	}
	if id.Scope != budget.AnalystScope {
		return nil, fault.RequestAnalyst()
	}
	if owns(who, id) {
		return nil, fault.AuthOwnAccount()
	}
	snapshot, err := s.policies.Current(dataset)
	if err != nil {
		return nil, err
	}
	failures, err := s.ledger.Failures(ctx, dataset, id.Name, budget.FailurePeriod)
	if err != nil {
		return nil, err
	}
	if err := s.ledger.ResetFailures(ctx, who.Subject, budget.Reset{Dataset: dataset, Analyst: id.Name}); err != nil {
		return nil, err
	}
	return &api.Failures{Dataset: dataset, Account: id.String(), Reset: failures, MaxFailures: tolerated(snapshot)}, nil
}

// SetBack lets the time of a dataset's ledger go on from an earlier one, after a clock was wrong; the journal says who did it and why.
func (s *Service) SetBack(ctx context.Context, who auth.Principal, dataset string, clock api.Clock) (*api.Clock, error) {
	if _, ok := s.datasets[dataset]; !ok {
		return nil, fault.UnknownDataset(dataset)
	}
	change := budget.SetBack{Dataset: dataset, To: clock.To.UTC(), Reason: clock.Reason}
	if clock.Approval != nil {
		a, err := ApprovalOf(*clock.Approval)
		if err != nil {
			return nil, err
		}
		change.Mandate = &budget.Mandate{Ledger: a.Ledger, At: a.At, Key: a.Key, Signature: a.Signature, Pair: a.Pair}
		if err := s.Stewards(dataset).CheckSetBack(change); err != nil {
			return nil, err
		}
	}
	if err := s.ledger.SetBack(ctx, who.Subject, change); err != nil {
		return nil, err
	}
	return &clock, nil
}

// Freeze stops all charges on an account that exists, or lets them go on; replays stay free.
func (s *Service) Freeze(ctx context.Context, who auth.Principal, dataset, name string, frozen bool) (*api.Account, error) {
	id, err := s.accountOfOthers(who, dataset, name)
	if err != nil {
		return nil, err
	}
	if err := s.ledger.Freeze(ctx, who.Subject, id, frozen); err != nil {
		return nil, err
	}
	return s.Account(ctx, dataset, name)
}
