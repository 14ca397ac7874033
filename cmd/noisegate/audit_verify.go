package main

import (
	"cmp"
	"context"
	"crypto/ed25519"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"os"
	"slices"

	"noisegate.example/api"
	"noisegate.example/budget"
	"noisegate.example/budget/journal"
	"noisegate.example/budget/pgledger"
	"noisegate.example/mechanisms"
)

type auditVerifyCommand struct {
	Export      string   `arg:"" optional:"" type:"path" help:"A file that audit export wrote; the running gateway's ledger when absent (stewards)."`
	Receipts    []string `type:"path" placeholder:"FILE" help:"Files with receipts, as answers carry them in Noisegate-Receipt: JSON, one after another."`
	PublicKey   string   `type:"path" placeholder:"FILE" help:"The public key of the gateway's receipts, as PEM (openssl pkey -in KEY -pubout). An export has to be signed with it."`
	Unsigned    bool     `help:"With --public-key, also take an export that is not signed, from before exports were, or signed with a later key: who gave it is believed."`
	StewardKeys string   `type:"path" placeholder:"FILE" help:"The public keys of the stewards who may sign, as the gateway has them (datasets.NAME.steward_keys_file); without it their signatures are only counted."`
	Archive     []string `type:"path" placeholder:"FILE" help:"Files that audit archive wrote, all of them; without them what was archived is not looked at."`
	gatewayFlags
}

// verifiedChain is what verify found out about a dataset, for people and as JSON.
type verifiedChain struct {
	Dataset   string `json:"dataset"`
	Entries   int    `json:"entries"`   // whose hash follows from the one before
	Unchained int    `json:"unchained"` // older than the chain
	Receipts  int    `json:"receipts"`  // that hold
	Unbound   int    `json:"unbound"`   // of them, those that bind no price: they are older than that, or are of several charges
	Unopened  int    `json:"unopened"`  // of them, those whose price was not looked at: what was given does not open it
	Signed    int    `json:"signed"`    // refills with a steward's signature
	Unsigned  int    `json:"unsigned"`  // refills without
	Accounts  int    `json:"accounts"`  // whose limit and sums are what entries say; 0: an older gateway exported it, without them
	Approved  int    `json:"approved"`  // versions of the policy, and limits, with a second steward's signature
	Seq       int64  `json:"seq"`       // of the newest entry
	Hash      string `json:"hash"`
	Archived  int64  `json:"archived,omitempty"` // entries up to this one are in files that were not given
	// Left are files, mostly of archives that did not end, all of whose entries are in the ledger or in other files.
	Left   []string `json:"left,omitempty"`
	Broken string   `json:"broken,omitempty"`
}

// auditBroken is the finding that the command is for.
type auditBroken struct{ chains int }

func (e auditBroken) Error() string {
	return fmt.Sprintf("%d of the ledger's chains were changed, or are older than a receipt", e.chains)
}

func (c *auditVerifyCommand) run(ctx context.Context, a *app) error {
	receipts, err := c.receipts()
	if err != nil {
		return err
	}
	stewards, err := c.stewards()
	if err != nil {
		return err
	}
	files, err := c.archives()
	if err != nil {
		return err
	}
	j, err := c.journal(ctx, a)
	if err != nil {
		return err
	}
	if c.Export == "" {
		if err := c.askGateway(ctx, a, j); err != nil {
			return err
		}
	}
	var found []verifiedChain
	broken := 0
	for _, dataset := range j.datasets(receipts, files) {
		chain := j.verify(dataset, files[dataset], receipts, stewards)
		chain.Broken = cmp.Or(chain.Broken, j.broken[dataset])
		if found = append(found, chain); chain.Broken != "" {
			broken++
		}
	}
	if c.JSON {
		err = printJSON(a.Out, found)
	} else {
		showChains(a, found, stewards)
	}
	if err == nil && broken > 0 {
		err = auditBroken{broken}
	}
	return err
}

// askGateway has the gateway compare what no export has: answers and requests of charges, ceilings, and the functions that guard tables.
func (c *auditVerifyCommand) askGateway(ctx context.Context, a *app, j *ledgerExport) error {
	client, err := c.client(a)
	if err != nil {
		return err
	}
	j.broken = map[string]string{}
	for _, head := range j.heads {
		verified, err := client.Verify(ctx, head.Dataset)
		if err != nil {
			return a.refused(c.JSON, "", err)
		}
		j.broken[head.Dataset] = verified.Broken
	}
	return nil
}

func showChains(a *app, found []verifiedChain, stewards journal.StewardKeys) {
	for _, chain := range found {
		fmt.Fprintf(a.Out, "%s: %d entries up to %d, head %s", chain.Dataset, chain.Entries, chain.Seq, chain.Hash)
		if chain.Unchained > 0 {
			fmt.Fprintf(a.Out, "; %d are older than the chain", chain.Unchained)
		}
		if chain.Archived > 0 {
			fmt.Fprintf(a.Out, "; those up to %d are archived: --archive looks at them, and at the rules that the others kept", chain.Archived)
		}
		if chain.Receipts > 0 {
			fmt.Fprintf(a.Out, "; %d receipts hold", chain.Receipts)
		}
		if chain.Accounts == 0 && chain.Broken == "" {
			fmt.Fprint(a.Out, "; its accounts are not in it")
		}
		if chain.Unbound > 0 {
			fmt.Fprintf(a.Out, "; %d bind no price", chain.Unbound)
		}
		if chain.Unopened > 0 {
			fmt.Fprintf(a.Out, "; the price of %d was not looked at: what was given does not open it", chain.Unopened)
		}
		if chain.Signed+chain.Unsigned > 0 {
			how := "signed"
			if stewards == nil {
				how = "say that they are signed (--steward-keys checks that)"
			}
			fmt.Fprintf(a.Out, "; of %d refills %d %s", chain.Signed+chain.Unsigned, chain.Signed, how)
		}
		if chain.Approved > 0 {
			how := "have a second steward's signature"
			if stewards == nil {
				how = "say that they have a second steward's signature (--steward-keys checks that)"
			}
			fmt.Fprintf(a.Out, "; of versions of the policy and limits %d %s", chain.Approved, how)
		}
		for _, path := range chain.Left {
			fmt.Fprintf(a.Out, "\n  %s is not needed: all its entries are in the ledger or in other files", path)
		}
		if chain.Broken != "" {
			fmt.Fprintf(a.Out, "\n  BROKEN: %s", chain.Broken)
		}
		fmt.Fprintln(a.Out)
	}
}

func (c *auditVerifyCommand) journal(ctx context.Context, a *app) (*ledgerExport, error) {
	if c.Export == "" {
		client, err := c.client(a)
		if err != nil {
			return nil, err
		}
		j, err := fetchJournal(ctx, client, "")
		if err != nil {
			return nil, a.refused(c.JSON, "", err)
		}
		return j, nil
	}
	file, err := os.Open(c.Export)
	if err != nil {
		return nil, usage(err)
	}
	defer file.Close()
	j, err := readJournal(file)
	if err != nil || c.PublicKey == "" || c.Unsigned {
		return j, err
	}
	key, err := c.publicKey("")
	if err != nil {
		return nil, err
	}
	switch err := j.signature.Check(key); {
	case errors.Is(err, journal.ErrUnsigned):
		return nil, unbelieved{fmt.Errorf("%w: export it again from a gateway with control.receipt_key_file, or say --unsigned", err)}
	case err != nil:
		return nil, unbelieved{err}
	}
	return j, nil
}

// unbelieved is the finding that an export is not what was signed, or that nobody whose key was given stands for it.
type unbelieved struct{ error }

// stewards reads the keys of stewards; nil for none.
func (c *auditVerifyCommand) stewards() (journal.StewardKeys, error) {
	if c.StewardKeys == "" {
		return nil, nil
	}
	text, err := os.ReadFile(c.StewardKeys)
	if err != nil {
		return nil, usage(err)
	}
	keys, err := journal.ParseStewardKeys(text)
	if err != nil {
		return nil, usage(err)
	}
	return keys, nil
}

// archivedFile is a file of entries, and what it takes to believe it.
type archivedFile struct {
	path       string
	key        ed25519.PublicKey
	after, end budget.Head // the end is known once it is read
}

// archives finds out whose files there are, in the order of their entries.
func (c *auditVerifyCommand) archives() (map[string][]archivedFile, error) {
	if len(c.Archive) == 0 {
		return nil, nil
	}
	key, err := c.publicKey("--archive")
	if err != nil {
		return nil, err
	}
	files := map[string][]archivedFile{}
	for _, path := range c.Archive {
		after, err := journal.ReadArchiveHeader(path)
		if err != nil {
			return nil, usage(err)
		}
		files[after.Dataset] = append(files[after.Dataset], archivedFile{path: path, key: key, after: after})
	}
	for _, of := range files {
		slices.SortFunc(of, func(a, b archivedFile) int { return cmp.Compare(a.after.Seq, b.after.Seq) })
	}
	return files, nil
}

// publicKey reads the key that a flag needs.
func (c *auditVerifyCommand) publicKey(flag string) (ed25519.PublicKey, error) {
	if c.PublicKey == "" {
		return nil, usage(errors.New(flag + " needs --public-key"))
	}
	text, err := os.ReadFile(c.PublicKey)
	if err != nil {
		return nil, usage(err)
	}
	key, err := journal.ParsePublicKey(text)
	if err != nil {
		return nil, usage(err)
	}
	return key, nil
}

// receipts reads the receipts and refuses those that the key did not sign: this gateway did not make them.
func (c *auditVerifyCommand) receipts() ([]journal.Receipt, error) {
	if len(c.Receipts) == 0 {
		return nil, nil
	}
	key, err := c.publicKey("--receipts")
	if err != nil {
		return nil, err
	}
	var all []journal.Receipt
	for _, name := range c.Receipts {
		some, err := readReceipts(name, key)
		if err != nil {
			return nil, err
		}
		all = append(all, some...)
	}
	return all, nil
}

func readReceipts(name string, key ed25519.PublicKey) (all []journal.Receipt, err error) {
	file, err := os.Open(name)
	if err != nil {
		return nil, usage(err)
	}
	defer file.Close()
	for values := json.NewDecoder(file); ; {
		var r journal.Receipt
		switch err := values.Decode(&r); {
		case errors.Is(err, io.EOF):
			return all, nil
		case err != nil:
			return nil, usage(fmt.Errorf("%s: receipt %d cannot be read: %w", name, len(all)+1, err))
		}
		if err := r.CheckSignature(key); err != nil {
			return nil, fmt.Errorf("%s: receipt %d, of release %s: %w", name, len(all)+1, r.Reservation, err)
		}
		all = append(all, r)
	}
}

// datasets lists whose chains there are, or should be.
func (j *ledgerExport) datasets(receipts []journal.Receipt, files map[string][]archivedFile) []string {
	names := map[string]bool{}
	for name := range files {
		names[name] = true
	}
	for _, e := range j.entries {
		names[e.Dataset] = true
	}
	for _, h := range j.heads {
		names[h.Dataset] = true
	}
	for _, r := range receipts {
		names[r.Dataset] = true
	}
	return slices.Sorted(maps.Keys(names))
}

// verify compares a dataset's entries with each other, with the rules of budgets, with the signatures of stewards, with
// the head of their chain, and with receipts.
func (j *ledgerExport) verify(dataset string, files []archivedFile, receipts []journal.Receipt,
	stewards journal.StewardKeys) verifiedChain {
	base := j.archivedTo(dataset).Head()
	f := followed{dataset: dataset, chain: journal.NewChain(budget.Head{Dataset: dataset}), auditor: journal.NewAuditor(dataset, stewards),
		judged: base.Seq == 0 || len(files) > 0, replayed: journal.NewReplayed(dataset),
		evidence: receipted{hashes: map[int64][32]byte{}, settled: map[budget.ReservationID]settledCharge{},
			opaque: map[journal.Digest]budget.ReservationID{}}}
	tables, left, err := j.follow(&f, files)
	found := verifiedChain{Dataset: dataset, Entries: f.chain.Entries, Unchained: f.chain.Unchained, Seq: f.chain.Head.Seq,
		Signed: f.auditor.Signed, Unsigned: f.auditor.Unsigned, Approved: f.auditor.Approved, Hash: hex.EncodeToString(f.chain.Head.Hash[:])}
	if !f.judged {
		found.Archived = base.Seq
	}
	if err == nil {
		err = j.compare(dataset, &f, tables)
	}
	if err == nil && tables != nil {
		found.Accounts = len(tables.state.Accounts)
	}
	for _, file := range left {
		if err == nil {
			err = file.isIn(f.evidence.hashes)
		}
		if err == nil { // else nobody knows that it is not needed
			found.Left = append(found.Left, file.path)
		}
	}
	if err == nil {
		f.evidence.archived = found.Archived
		err = f.evidence.hold(dataset, receipts, &found)
	}
	if err != nil {
		found.Broken = err.Error()
	}
	return found
}

// followed is the state that a dataset's entries produce when they are applied in their order.
type followed struct {
	dataset  string
	chain    *journal.Chain
	auditor  *journal.Auditor
	judged   bool // else nobody knows the accounts that the entries behind an archive were charged to
	replayed journal.Replayed
	replays  bool // replayed follows the entries from a state that is known
	evidence receipted
}

func (f *followed) add(e budget.Entry, shown journal.Shown) error {
	if err := f.chain.Add(e); err != nil {
		return err
	}
	if f.judged {
		if err := f.auditor.Add(e); err != nil {
			return err
		}
	}
	if f.replays {
		if what := f.replayed.Add(e); what != "" {
			return &journal.BrokenError{Dataset: f.dataset, Seq: e.Seq, What: what}
		}
	}
	f.evidence.add(e, shown, f.auditor)
	return nil
}

// follow reads the entries of a dataset: from files that lead to those of the export, then these. It gives what the ledger's
// tables had at that moment, nil where the export lacks it, and the files that do not lead there.
func (j *ledgerExport) follow(f *followed, files []archivedFile) (tables *readTables, left []archivedFile, err error) {
	archived := j.archivedTo(f.dataset)
	base := archived.Head()
	if !f.judged {
		f.chain = journal.NewChain(base)
	}
	if tables, err = j.tablesOf(f.dataset); err != nil {
		return tables, nil, err
	}
	if f.replays = f.judged || tables != nil; tables != nil && base.Seq > 0 {
		kept, err := archived.StateOf(tables.Archived)
		if err != nil {
			return tables, nil, err
		}
		if !f.judged {
			f.replayed = kept
		}
	}
	if files, left, err = leadTo(base, files); err != nil {
		return tables, left, err
	}
	for _, file := range files {
		if err := file.read(&f.chain.Head, f.add); err != nil {
			return tables, left, err
		}
	}
	if f.judged && f.chain.Head != base && base.Seq > 0 {
		return tables, left, fmt.Errorf("the files end with entry %d, and entries up to %d are archived", f.chain.Head.Seq, base.Seq)
	}
	for _, shown := range j.entries {
		if shown.Dataset != f.dataset {
			continue
		}
		e, err := entryOf(shown)
		if err != nil {
			return tables, left, err
		}
		opened, err := shownOf(shown)
		if err != nil {
			return tables, left, err
		}
		if err := f.add(e, opened); err != nil {
			return tables, left, err
		}
	}
	return tables, left, nil
}

// compare holds what the entries come to against the head of their chain, the stored policies and the ledger's tables.
func (j *ledgerExport) compare(dataset string, f *followed, tables *readTables) (err error) {
	if i := slices.IndexFunc(j.heads, func(h api.ChainHead) bool { return h.Dataset == dataset }); i >= 0 {
		head := budget.Head{Dataset: dataset, Seq: j.heads[i].Seq}
		if head.Hash, err = hashOf(j.heads[i].Hash); err != nil {
			return err
		}
		if err := f.chain.EndsAt(head); err != nil {
			return err
		}
	}
	if f.replays && j.stored {
		if err := j.verifyPolicies(dataset, f.replayed.Policies); err != nil {
			return err
		}
	}
	if tables != nil {
		if what := f.replayed.Compare(tables.state); what != "" {
			return &journal.BrokenError{Dataset: dataset, What: what}
		}
	}
	return nil
}

// verifyPolicies compares the stored versions of a dataset's policy with the entries.
func (j *ledgerExport) verifyPolicies(dataset string, told []budget.PolicyRow) error {
	var stored []budget.PolicyRow
	for _, p := range j.policies {
		if p.Dataset != dataset {
			continue
		}
		row := budget.PolicyRow{Version: p.Version, AppliedBy: p.AppliedBy, AppliedAt: p.AppliedAt.UTC(), Entry: p.Entry,
			RaisedBy: p.RaisedBy}
		for into, text := range map[*[32]byte]string{&row.Document: p.Document, &row.Facts: p.Facts, &row.Digest: p.Digest} {
			var err error
			if *into, err = hashOf(text); err != nil {
				return fmt.Errorf("version %d of the policy: %w", p.Version, err)
			}
		}
		stored = append(stored, row)
	}
	if what := journal.ComparePolicies(told, stored); what != "" {
		return &journal.BrokenError{Dataset: dataset, What: what}
	}
	return nil
}

// receipted has what receipts are compared with: hashes of entries by number, and settled charges, also by what receipts show of them.
type receipted struct {
	hashes  map[int64][32]byte
	settled map[budget.ReservationID]settledCharge
	opaque  map[journal.Digest]budget.ReservationID
	// archived is up to which number entries are in files that were not given; 0: all are there.
	archived int64
}

// settledCharge has the facts that every receipt of a charge must agree with.
type settledCharge struct {
	answer     [32]byte
	commitment journal.Digest // zero: nothing that was given opens it
}

// add notes an entry after the auditor has it, if it judges.
func (a *receipted) add(e budget.Entry, shown journal.Shown, auditor *journal.Auditor) {
	a.hashes[e.Seq] = identityOf(e)
	if e.Kind != budget.EntrySettle {
		return
	}
	var c settledCharge
	copy(c.answer[:], e.Digest)
	if accounts, known := auditor.AccountsOf(e); known && shown.Opening != (journal.Digest{}) {
		c.commitment = journal.Commitment(shown.Opening, e, accounts)
	}
	a.settled[e.Reservation] = c
	if shown.Head != (journal.Digest{}) {
		a.opaque[shown.Head] = e.Reservation
	}
}

// hold counts the receipts of a dataset that hold, or says why one does not.
func (a *receipted) hold(dataset string, receipts []journal.Receipt, found *verifiedChain) error {
	for _, r := range receipts {
		if r.Dataset != dataset {
			continue
		}
		named, there := a.opaque[r.Head.Hash]
		charge, settled := a.settled[r.Reservation]
		hash, ok := a.hashes[r.Head.Seq]
		switch {
		case a.archived > 0 && (r.Reservation != "" && !settled || !ok && r.Head.Seq != 0 && r.Head.Seq <= a.archived):
			return fmt.Errorf("the receipt of release %s names nothing that is left in the ledger, whose entries up to %d are archived: give "+
				"all files that noisegate audit archive wrote with --archive, and it is held against these too", r.Reservation, a.archived)
		case r.Head.Seq == 0 && r.Reservation != "" && (!there || named != r.Reservation):
			return fmt.Errorf("the receipt of release %s names a settlement that is not there: the ledger is older than the receipt, or "+
				"another one", r.Reservation)
		case !ok && r.Head.Seq != 0:
			return fmt.Errorf("the receipt of release %s names entry %d, which is not there: the ledger is older than the receipt",
				r.Reservation, r.Head.Seq)
		case r.Head.Seq != 0 && hash != r.Head.Hash:
			return fmt.Errorf("the receipt of release %s names another entry %d", r.Reservation, r.Head.Seq)
		case r.Reservation != "" && charge.answer != r.Answer: // it names none where nothing was charged
			return fmt.Errorf("the ledger has another answer for release %s than its receipt", r.Reservation)
		case r.Commitment == (journal.Digest{}):
			found.Unbound++
		case charge.commitment == (journal.Digest{}):
			found.Unopened++
		case charge.commitment != r.Commitment:
			return fmt.Errorf("the ledger has another price for release %s, or charged others, than its receipt", r.Reservation)
		}
		found.Receipts++
	}
	return nil
}

// readTables reads the tables of a dataset that the export has besides its entries.
type readTables struct {
	api.StoredTables
	state journal.Replayed
}

// tablesOf is nil for an export that lacks them.
func (j *ledgerExport) tablesOf(dataset string) (*readTables, error) {
	i := slices.IndexFunc(j.tables, func(t api.StoredTables) bool { return t.Dataset == dataset })
	if i < 0 {
		return nil, nil
	}
	t := &readTables{StoredTables: j.tables[i], state: journal.NewReplayed(dataset)}
	if err := json.Unmarshal(t.State, &t.state); err != nil {
		return nil, fmt.Errorf("the state of its tables cannot be read: %w", err)
	}
	return t, nil
}

// archivedTo returns the dataset's newest archive as the chain records it; the chain goes on from its end. Zero: nothing was archived.
func (j *ledgerExport) archivedTo(dataset string) (newest journal.Archived) {
	newest.Dataset = dataset
	first := int64(0)
	for _, shown := range j.entries {
		if shown.Dataset != dataset {
			continue
		}
		if first == 0 {
			first = shown.Seq
		}
		e, err := entryOf(shown)
		if archived, ok := journal.ArchiveOf(e); err == nil && ok && archived.Seq < first {
			newest = archived
		}
	}
	return newest
}

// leadTo reads all files, and are those whose entries lead to a head, one after another. The others are left, mostly of
// archives that did not end. Where none lead there, all are said to, and reading them says what is missing. Files are in
// the order of their entries.
func leadTo(head budget.Head, files []archivedFile) (led, left []archivedFile, err error) {
	last := map[budget.Head]int{} // of the files that lead to an entry from the first one on
	for i := range files {
		found, err := pgledger.CheckArchive(files[i].path, files[i].key, nil)
		if err != nil {
			return nil, nil, err
		}
		f := &files[i]
		f.end = found.Head()
		_, follows := last[f.after]
		if _, there := last[f.end]; !there && f.end.Seq > f.after.Seq && (follows || f.after.Seq == 0) {
			last[f.end] = i
		}
	}
	leads := make([]bool, len(files))
	for head.Seq > 0 {
		i, ok := last[head]
		if !ok {
			return files, nil, nil
		}
		leads[i], head = true, files[i].after
	}
	for i, f := range files {
		if leads[i] {
			led = append(led, f)
		} else {
			left = append(left, f)
		}
	}
	return led, left, nil
}

// isIn makes sure that all entries of a file are among those of a ledger and of other files, whose identities are given by number.
func (f archivedFile) isIn(known map[int64][32]byte) error {
	same := func(seq int64, identity [32]byte) error {
		switch there, ok := known[seq]; {
		case !ok:
			return fmt.Errorf("%s has an entry %d that is not there: the ledger is older than the file, or another one", f.path, seq)
		case there != identity:
			return fmt.Errorf("%s has another entry %d than the ledger, or than another file", f.path, seq)
		}
		return nil
	}
	if f.after.Seq > 0 {
		if err := same(f.after.Seq, f.after.Hash); err != nil {
			return err
		}
	}
	_, err := pgledger.CheckArchive(f.path, f.key, func(e budget.Entry, _ journal.Shown) error { return same(e.Seq, identityOf(e)) })
	return err
}

// identityOf is the same for entries that are equal in all that is hashed; of an entry that is older than the chain, which says nothing
// of the entries before it, too.
func identityOf(e budget.Entry) [32]byte {
	if e.Hash == [32]byte{} {
		return journal.HashAfter(e, e.Hash)
	}
	return e.Hash
}

// read hands on the entries of a file that follows a head.
func (f archivedFile) read(head *budget.Head, add func(budget.Entry, journal.Shown) error) error {
	if f.after != *head {
		return fmt.Errorf("%s follows entry %d, and the file before it ends with %d", f.path, f.after.Seq, head.Seq)
	}
	_, _, err := journal.ReadArchive(f.path, f.key, func(_ budget.Head, e budget.Entry, shown journal.Shown) error { return add(e, shown) })
	return err
}

// entryOf reads an entry as its hash covers it.
func entryOf(shown api.AuditEntry) (e budget.Entry, err error) {
	defer func() {
		if err != nil {
			err = fmt.Errorf("entry %d: %w", shown.Seq, err)
		}
	}()
	e = budget.Entry{Seq: shown.Seq, At: shown.At, Kind: budget.EntryKind(shown.Kind), Dataset: shown.Dataset, Analyst: shown.Subject,
		Reservation: budget.ReservationID(shown.ReleaseID), AccountIDs: shown.AccountIDs, MechanismText: []byte(shown.Mechanisms),
		AccountText: []byte(shown.Account)}
	if e.Loss, err = lossOf(shown.Amounts); err != nil {
		return e, err
	}
	if shown.Shared != nil {
		shared, err := lossOf(*shown.Shared)
		if err != nil {
			return e, err
		}
		e.Shared = &shared
	}
	if e.Digest, err = hex.DecodeString(shown.Digest); err != nil {
		return e, errors.New("its digest is not hexadecimal")
	}
	if shown.Hash != "" {
		e.Hash, err = hashOf(shown.Hash)
	}
	return e, err
}

// shownOf reads what receipts show of a settlement; what is missing is zero.
func shownOf(shown api.AuditEntry) (s journal.Shown, err error) {
	for into, text := range map[*journal.Digest]string{&s.Head: shown.ReceiptHead, &s.Opening: shown.ReceiptOpening} {
		if text == "" {
			continue
		}
		if *into, err = hashOf(text); err != nil {
			return s, fmt.Errorf("entry %d: %w", shown.Seq, err)
		}
	}
	return s, nil
}

func lossOf(a api.Amounts) (l mechanisms.Loss, err error) {
	if l.Unbounded = a.Epsilon == ""; !l.Unbounded {
		if l.Epsilon, err = mechanisms.ParseEpsilon(string(a.Epsilon)); err != nil {
			return l, err
		}
	}
	if l.Rho, err = mechanisms.ParseRho(string(a.Rho)); err != nil {
		return l, err
	}
	if l.Delta, err = mechanisms.ParseDelta(string(a.Delta)); err != nil || a.Tail == "" {
		return l, err
	}
	l.Tail, err = mechanisms.ParseDelta(string(a.Tail))
	return l, err
}

func hashOf(text string) (hash [32]byte, err error) {
	bytes, err := hex.DecodeString(text)
	if err != nil || len(bytes) != len(hash) {
		return hash, errors.New("a hash is not 64 hexadecimal digits")
	}
	return [32]byte(bytes), nil
}
