package main

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"noisegate.example/budget"
	"noisegate.example/budget/journal"
	"noisegate.example/budget/pgledger"
	"noisegate.example/cmd/noisegate/internal/config"
	"noisegate.example/mechanisms"
)

// everyKindOfEntry are the kinds of entries that a ledger may have.
func everyKindOfEntry() []budget.EntryKind {
	return []budget.EntryKind{budget.EntryReserve, budget.EntrySettle, budget.EntryVoid, budget.EntryExpire, budget.EntryLimit,
		budget.EntryRefill, budget.EntryFreeze, budget.EntryThaw, budget.EntryFail, budget.EntryReset, budget.EntryImport, budget.EntryPolicy,
		budget.EntryFree, budget.EntryKeys, budget.EntryRecharge, budget.EntryResume, budget.EntryArchive,
		budget.EntryClock}
}

// evidenceSite is a site whose ledger has every kind of entry, partly in an archive.
type evidenceSite struct {
	*site
	env, serving             config.Environment
	export, archive, receipt string // files
	key                      string
	signer                   *journal.Signer
}

// ask gives the receipt of an answer.
func (s *evidenceSite) ask(t *testing.T, sql string) string {
	t.Helper()
	body, err := json.Marshal(map[string]string{"dataset": demoDataset, "sql": sql, "epsilon": "0.1"})
	if err != nil {
		t.Fatal(err)
	}
	for deadline := time.Now().Add(30 * time.Second); ; time.Sleep(50 * time.Millisecond) { // gateways learn within a second that it goes on
		request, err := http.NewRequestWithContext(t.Context(), http.MethodPost, "http://"+s.address+"/v1/query", bytes.NewReader(body))
		if err != nil {
			t.Fatal(err)
		}
		request.Header.Set("Authorization", "Bearer "+s.token(t, "ana", "analyst"))
		request.Header.Set("Content-Type", "application/json")
		response, err := http.DefaultClient.Do(request)
		if err != nil {
			t.Fatal(err)
		}
		text, err := io.ReadAll(response.Body)
		response.Body.Close()
		switch {
		case err == nil && response.StatusCode == http.StatusOK:
			return response.Header.Get("Noisegate-Receipt")
		case err != nil || response.StatusCode != http.StatusServiceUnavailable || time.Now().After(deadline):
			t.Fatalf("%s: %s, %v", sql, text, err)
		}
	}
}

func newEvidenceSite(t *testing.T) *evidenceSite {
	t.Helper()
	s := &evidenceSite{site: newSite(t)}
	keyText, err := journal.NewKeyText()
	if err != nil {
		t.Fatal(err)
	}
	if s.signer, err = journal.NewSigner(keyText); err != nil {
		t.Fatal(err)
	}
	public, err := journal.PublicKeyText(s.signer.Public())
	if err != nil {
		t.Fatal(err)
	}
	s.key = s.write(t, "receipt.pub", string(public))
	s.serving = config.Environment{"NOISEGATE_CONTROL_RECEIPT_KEY_FILE": s.write(t, "receipt.key", string(keyText))}
	s.env = config.Environment{"NOISEGATE_URL": "http://" + s.address, "NOISEGATE_TOKEN": s.token(t, "sam", "steward")}
	s.expect(t, nil, exitOK, "applied", "migrate")
	s.expect(t, nil, exitOK, "applied", "policy", "apply", s.policy)
	stop := s.serve(t, s.serving)
	stopped := func() {
		if code, log := stop(); code != exitOK {
			t.Errorf("exit code %d: %s", code, log)
		}
	}
	first := s.ask(t, "SELECT count(*) FROM people")
	stopped()
	s.everyKind(t)
	s.archive = filepath.Join(s.dir, "archive")
	if _, err := pgledger.Archive(t.Context(), pgledger.ArchiveOrder{OwnerDSN: s.database.dsn(s.database.super, demoControl).Reveal(),
		Dataset: demoDataset, Before: time.Now().Add(time.Hour), By: "op", Path: s.archive, Signer: s.signer}); err != nil {
		t.Fatal(err)
	}
	s.everyKind(t) // once more, behind the archive
	stop = s.serve(t, s.serving)
	second := s.ask(t, "SELECT count(*) FROM people WHERE age > 40")
	s.export, s.receipt = filepath.Join(s.dir, "export"), s.write(t, "receipts", first+"\n"+second+"\n")
	s.expect(t, s.env, exitOK, "entries written", "audit", "export", "--out="+s.export)
	s.expect(t, s.env, exitOK, demoDataset+": ", "audit", "verify", "--archive="+s.archive, "--public-key="+s.key, "--receipts="+s.receipt)
	stopped()
	return s
}

// everyKind writes an entry of each kind that the test's question does not write.
func (s *evidenceSite) everyKind(t *testing.T) {
	t.Helper()
	ctx := t.Context()
	l, err := pgledger.Open(ctx, s.database.dsn("noisegate", demoControl).Reveal())
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	unique := fmt.Sprint(time.Now().UnixNano())
	limit := budget.Limit{Form: budget.Pure, Epsilon: 1000, Rho: budget.Never}
	own := budget.Account{ID: budget.AccountID{Dataset: demoDataset, Scope: budget.AnalystScope, Name: "zoe" + unique}, Limit: limit,
		Origin: budget.FromSteward}
	failed := func(err error) {
		t.Helper()
		if err != nil {
			t.Fatal(err, errors.Unwrap(err))
		}
	}
	failed(l.SetLimit(ctx, "sam", own))
	for n, end := range []func(budget.ReservationID) error{
		func(id budget.ReservationID) error { return l.Void(ctx, id) }, func(id budget.ReservationID) error { return l.Expire(ctx, id) },
		func(id budget.ReservationID) error { return l.Fail(ctx, id) },
		func(id budget.ReservationID) error {
			return l.SettleApart(ctx, id, budget.Apart{Own: mechanisms.Loss{Epsilon: 8}, Shared: mechanisms.Loss{Epsilon: 5}}, []byte("apart"))
		},
	} {
		id := budget.ReservationID(fmt.Sprint("R", n, unique))
		_, err := l.Reserve(ctx, budget.Charge{ID: id, Dataset: demoDataset, Analyst: own.ID.Name, Loss: mechanisms.Loss{Epsilon: 10},
			Accounts: []budget.Account{{ID: budget.AccountID{Dataset: demoDataset, Scope: budget.DatasetScope}, Limit: limit,
				Origin: budget.FromPolicy}, own}, Fingerprint: [32]byte([]byte(fmt.Sprintf("%-32s", id))), Request: json.RawMessage("{}")})
		failed(err)
		failed(end(id))
	}
	failed(l.Refill(ctx, "sam", budget.Refill{Account: own.ID, Epsilon: 5, Reason: "more"}))
	failed(l.Freeze(ctx, "sam", own.ID, true))
	failed(l.Freeze(ctx, "sam", own.ID, false))
	failed(l.ResetFailures(ctx, "sam", budget.Reset{Dataset: demoDataset, Analyst: own.ID.Name}))
	failed(l.RecordImport(ctx, "sam", budget.Import{Dataset: demoDataset, Ensemble: "digits", Version: 1, Source: "a file"}))
	failed(l.RecordFreeReads(ctx, budget.FreeReads{Dataset: demoDataset, Analyst: "ana", Day: "2026-11-26", Version: 1, Reads: 4}))
	_, err = l.Recharge(ctx, "op", []budget.Recharge{{Charged: budget.Charged{Analyst: own.ID.Name, Accounts: []budget.AccountID{own.ID},
		Loss: mechanisms.Loss{Epsilon: 3}}, ID: budget.ReservationID("lost" + unique), Dataset: demoDataset, Receipt: json.RawMessage("{}")}})
	failed(err)
	failed(s.database.as(ctx, s.database.super, demoControl, func(conn *pgx.Conn) error { // as if clocks had been wrong
		_, err := conn.Exec(ctx, `SET session_replication_role = replica; UPDATE noisegate.chain SET at = at + interval '1 hour'`)
		return err
	}))
	failed(l.Freeze(ctx, "sam", own.ID, true))
	failed(l.SetBack(ctx, "sam", budget.SetBack{Dataset: demoDataset, To: time.Now().Truncate(time.Microsecond), Reason: "a clock was wrong"}))
	failed(s.database.as(ctx, s.database.super, demoControl, func(conn *pgx.Conn) error {
		_, err := conn.Exec(ctx, "UPDATE noisegate.chain SET lost = true WHERE dataset = $1", demoDataset)
		return err
	}))
	_, resumed, err := l.Resume(ctx, "op", budget.Resume{Dataset: demoDataset, Reason: "a test"})
	failed(err)
	if !resumed {
		t.Fatal("nothing was held")
	}
}

// TestEveryKindOfEvidence: a ledger with every kind of entry is whole, through the API, as an export and with an archive; its receipts bind
// what was charged; and a change of any member of any line is found.
//
// covers: A70
func TestEveryKindOfEvidence(t *testing.T) {
	if testing.Short() {
		t.Skip("-short: this takes long")
	}
	s := newEvidenceSite(t)
	verify := func(export string, more ...string) (int, string) {
		t.Helper()
		code, out, errs := s.run(t, nil, append([]string{"audit", "verify", export, "--public-key=" + s.key, "--archive=" + s.archive},
			more...)...)
		return code, out + errs
	}
	if code, out := verify(s.export, "--receipts="+s.receipt); code != exitOK || !strings.Contains(out, "2 receipts hold; of") {
		t.Fatalf("exit code %d: %s", code, out)
	}
	text, err := os.ReadFile(s.export)
	if err != nil {
		t.Fatal(err)
	}
	archived, err := os.ReadFile(s.archive)
	if err != nil {
		t.Fatal(err)
	}
	kinds := map[string]bool{}
	// Each member of each kind of line, which no two lines need to show.
	changed := func(name string, text []byte, check func(file string) (int, string)) (changes int) {
		t.Helper()
		lines, seen := bytes.SplitAfter(text, []byte("\n")), map[string]bool{}
		for n, line := range lines[:len(lines)-1] {
			var members map[string]json.RawMessage
			if err := json.Unmarshal(line, &members); err != nil {
				t.Fatal(err)
			}
			kinds[strings.Trim(string(members["kind"]), `"`)] = true
			for _, path := range memberPaths(t, line) {
				if of := string(members["kind"]) + path; !seen[of] {
					seen[of] = true
					changes++
					edited := slices.Concat(slices.Concat(lines[:n]...), mutated(t, line, path), slices.Concat(lines[n+1:]...))
					file := s.write(t, "changed", string(edited))
					if code, out := check(file); code == exitOK {
						t.Errorf("%s: nobody finds that %s of line %d was changed: %s", name, path, n+1, out)
					}
				}
			}
		}
		for what, edited := range map[string][]byte{
			"a line less":    slices.Concat(slices.Concat(lines[:1]...), slices.Concat(lines[2:]...)),
			"no signature":   slices.Concat(lines[:len(lines)-2]...),
			"a line more":    slices.Concat(text, lines[0]),
			"an end missing": text[:len(text)-1],
		} {
			if code, out := check(s.write(t, "changed", string(edited))); code == exitOK {
				t.Errorf("%s: nobody finds %s: %s", name, what, out)
			}
		}
		return changes
	}
	inExport := changed("export", text, func(file string) (int, string) { return verify(file) })
	inArchive := changed("archive", archived, func(file string) (int, string) {
		code, out, errs := s.run(t, nil, "audit", "verify", s.export, "--public-key="+s.key, "--archive="+file)
		return code, out + errs
	})
	for _, kind := range everyKindOfEntry() {
		if !kinds[string(kind)] {
			t.Errorf("no entry of kind %s", kind)
		}
	}
	t.Logf("%d members were changed in the export, %d in the archive", inExport, inArchive)
	s.forgedPrices(t)
	s.oldForms(t, text)
	s.editsShow(t)
}

// forgedPrices: an attacker who writes a whole ledger anew, with hashes that fit, cannot give it other prices than its receipts bind.
func (s *evidenceSite) forgedPrices(t *testing.T) {
	t.Helper()
	signer := newSigner(t)
	before := budget.Head{Dataset: "d"}
	id := budget.AccountID{Dataset: "d", Scope: budget.AnalystScope, Name: "ana"}
	seal := func(e *budget.Entry) {
		e.Dataset, e.At = "d", time.UnixMicro(e.Seq).UTC()
		e.Hash = journal.HashAfter(*e, before.Hash)
		before.Seq, before.Hash = e.Seq, e.Hash
	}
	ledger := func(loss mechanisms.Loss) (settled budget.Entry, chain []budget.Entry) {
		before = budget.Head{Dataset: "d"}
		chain = []budget.Entry{
			{Seq: 1, Kind: budget.EntryLimit, Analyst: "policy", AccountIDs: []int64{1},
				AccountText: []byte(`{"scope":"analyst","name":"ana","origin":"policy","form":"pure","epsilon_pico":1000,"rho_pico":-1}`)},
			{Seq: 2, Kind: budget.EntryReserve, Analyst: "ana", Reservation: "R", AccountIDs: []int64{1}, Loss: loss, Digest: make([]byte, 32),
				MechanismText: []byte("[]")},
			{Seq: 3, Kind: budget.EntrySettle, Analyst: "ana", Reservation: "R", AccountIDs: []int64{1}, Loss: loss, Digest: make([]byte, 32)},
		}
		for i := range chain {
			seal(&chain[i])
		}
		return chain[2], chain
	}
	settled, chain := ledger(mechanisms.Loss{Epsilon: 100})
	genuine := signer.Sign(budget.Settlement{Head: before, At: settled.At, Charged: &budget.Charged{Analyst: "ana",
		Accounts: []budget.AccountID{id}, Loss: settled.Loss}}, "R", nil)
	old := genuine
	old.Commitment = journal.Digest{}
	for _, c := range []struct {
		what    string
		forge   func([]budget.Entry) []budget.Entry
		receipt journal.Receipt
		opened  bool
		broken  string
		unbound int
		closed  int
	}{
		{"nothing", func(all []budget.Entry) []budget.Entry { return all }, genuine, true, "", 0, 0},
		{"a price", func([]budget.Entry) []budget.Entry { _, all := ledger(mechanisms.Loss{Epsilon: 1}); return all }, genuine, true,
			"another price for release R", 0, 0},
		{"whose account it is", func([]budget.Entry) []budget.Entry {
			_, all := ledger(mechanisms.Loss{Epsilon: 100})
			all[0].AccountText = bytes.Replace(all[0].AccountText, []byte("ana"), []byte("eve"), 1)
			before = budget.Head{Dataset: "d"}
			for i := range all {
				seal(&all[i])
			}
			return all
		}, genuine, true, "or charged others", 0, 0},
		{"a receipt of before", func([]budget.Entry) []budget.Entry { _, all := ledger(mechanisms.Loss{Epsilon: 1}); return all }, old, true,
			"", 1, 0},
		{"an export that opens nothing", func(all []budget.Entry) []budget.Entry { return all }, genuine, false, "", 0, 1},
	} {
		j := &ledgerExport{}
		for _, e := range c.forge(chain) {
			j.show(e)
			shown := &j.entries[len(j.entries)-1]
			shown.ReleaseID, shown.AccountIDs, shown.Mechanisms, shown.Digest = string(e.Reservation), e.AccountIDs, string(e.MechanismText),
				fmt.Sprintf("%x", e.Digest)
			shown.Amounts.Epsilon = "0"
			if e.Loss.Epsilon > 0 {
				shown.Amounts.Epsilon = "1e-10"
				if e.Loss.Epsilon == 1 {
					shown.Amounts.Epsilon = "1e-12"
				}
			}
			if e.Kind == budget.EntrySettle { // the forger copies what receipts show
				shown.ReceiptHead = fmt.Sprintf("%x", genuine.Head.Hash)
				if opening := signer.Opening("R"); c.opened {
					shown.ReceiptOpening = fmt.Sprintf("%x", opening[:])
				}
			}
		}
		c.receipt.Answer = [32]byte{}
		found := j.verify("d", nil, []journal.Receipt{c.receipt}, nil)
		if c.broken == "" && found.Broken != "" || !strings.Contains(found.Broken, c.broken) || found.Unbound != c.unbound ||
			found.Unopened != c.closed {
			t.Errorf("%s: %+v", c.what, found)
		}
	}
}

// oldForms: exports of before, which nobody signed, verify as they did; with a key they are refused unless somebody says otherwise.
func (s *evidenceSite) oldForms(t *testing.T, text []byte) {
	t.Helper()
	lines := bytes.SplitAfter(text, []byte("\n"))
	file := s.write(t, "old", string(slices.Concat(lines[:len(lines)-2]...)))
	s.expect(t, nil, exitOK, "are archived", "audit", "verify", file)
	s.expect(t, nil, exitAbove, "the export is not signed", "audit", "verify", file, "--public-key="+s.key, "--receipts="+s.receipt)
	s.expect(t, nil, exitOK, "2 receipts hold", "audit", "verify", file, "--public-key="+s.key, "--receipts="+s.receipt,
		"--archive="+s.archive, "--unsigned")
	other, err := journal.PublicKeyText(newSigner(t).Public())
	if err != nil {
		t.Fatal(err)
	}
	s.expect(t, nil, exitAbove, "was signed with the key", "audit", "verify", s.export, "--public-key="+s.write(t, "other.pub", string(other)))
}

// memberPaths are where the values of a JSON object are: "a/b" of members in members. Values in lists count as one.
func memberPaths(t *testing.T, object []byte) (all []string) {
	t.Helper()
	var members map[string]json.RawMessage
	if err := json.Unmarshal(object, &members); err != nil {
		t.Fatal(err)
	}
	for name, value := range members {
		if bytes.HasPrefix(value, []byte("{")) {
			for _, path := range memberPaths(t, value) {
				all = append(all, name+"/"+path)
			}
			continue
		}
		all = append(all, name)
	}
	slices.Sort(all)
	return all
}

// mutated is a line in which the value at a path is another one of its type.
func mutated(t *testing.T, line []byte, path string) []byte {
	t.Helper()
	name, rest, inner := strings.Cut(path, "/")
	var members map[string]json.RawMessage
	if err := json.Unmarshal(line, &members); err != nil {
		t.Fatal(err)
	}
	value := members[name]
	var other []byte
	switch {
	case inner:
		other = bytes.TrimSuffix(mutated(t, value, rest), []byte("\n"))
	case bytes.Equal(value, []byte("true")), bytes.Equal(value, []byte("false")):
		other = []byte(fmt.Sprint(string(value) == "false"))
	case bytes.HasPrefix(value, []byte("[")):
		other = []byte("[]")
		if bytes.Equal(value, other) {
			other = []byte("[1]")
		}
	case bytes.HasPrefix(value, []byte(`"`)) && len(value) > 2:
		other = slices.Clone(value)
		if other[1] = '1'; value[1] == '1' {
			other[1] = '2'
		}
	case bytes.HasPrefix(value, []byte(`"`)):
		other = []byte(`"x"`)
	default:
		other = append(slices.Clone(value), '1')
		if bytes.Equal(value, []byte("null")) {
			other = []byte("1")
		}
	}
	at := bytes.Index(line, append([]byte(`"`+name+`":`), value...))
	if at < 0 {
		t.Fatalf("%s is not in %s", path, line)
	}
	at += len(name) + 3
	return slices.Concat(line[:at], other, line[at+len(value):])
}
