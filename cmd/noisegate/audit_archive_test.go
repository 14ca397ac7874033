package main

import (
	"bytes"
	"cmp"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"noisegate.example/api"
	"noisegate.example/budget"
	"noisegate.example/budget/journal"
)

// newSigner returns a signer with a new key.
func newSigner(t *testing.T) *journal.Signer {
	t.Helper()
	private, err := journal.NewKeyText()
	if err != nil {
		t.Fatal(err)
	}
	signer, err := journal.NewSigner(private)
	if err != nil {
		t.Fatal(err)
	}
	return signer
}

// archivedLedger is a chain of four entries, whose first two are in a file, and the entry that says so.
func archivedLedger(t *testing.T, signer *journal.Signer, path string) *ledgerExport {
	t.Helper()
	head := budget.Head{Dataset: "d"}
	w, err := journal.NewArchiveWriter(path, head, signer)
	if err != nil {
		t.Fatal(err)
	}
	j := &ledgerExport{}
	record := journal.Archived{Seq: 2, Entries: 2}
	for seq := int64(1); seq <= 5; seq++ {
		e := budget.Entry{Seq: seq, At: time.UnixMicro(seq).UTC(), Kind: budget.EntryImport, Dataset: "d", Analyst: "sam",
			AccountText: []byte(fmt.Sprintf(`{"imports_votes_of":"digits","version":%d,"source":"a file"}`, seq))}
		if seq == 5 {
			e.Kind = budget.EntryArchive
			if e.AccountText, err = json.Marshal(record); err != nil {
				t.Fatal(err)
			}
		}
		e.Hash = journal.HashAfter(e, head.Hash)
		head.Seq, head.Hash = e.Seq, e.Hash
		if seq == record.Seq {
			record.Hash = e.Hash
		}
		if seq <= record.Seq {
			if err := w.Add(e); err != nil {
				t.Fatal(err)
			}
			continue
		}
		j.show(e)
	}
	if _, err := w.Close(); err != nil {
		t.Fatal(err)
	}
	return j
}

// show makes an entry the newest of the only dataset; one without a hash is older than the chain.
func (j *ledgerExport) show(e budget.Entry) {
	shown := api.AuditEntry{Seq: e.Seq, At: e.At, Kind: string(e.Kind), Dataset: e.Dataset, Subject: e.Analyst,
		AccountIDs: []int64{}, Amounts: api.Amounts{Epsilon: "0", Rho: "0", Delta: "0"}, Account: string(e.AccountText)}
	if e.Hash != [32]byte{} {
		shown.Hash = hex.EncodeToString(e.Hash[:])
		j.heads = []api.ChainHead{{Dataset: e.Dataset, Seq: e.Seq, Hash: shown.Hash}}
	}
	j.entries = append(j.entries, shown)
}

// write writes what readJournal reads; without a signer (nil) it is not signed.
func (j *ledgerExport) write(to io.Writer, signer *journal.Signer) error {
	w := journal.NewExportWriter(to, signer)
	for _, e := range j.entries {
		if err := w.Add(e); err != nil {
			return err
		}
	}
	return errors.Join(w.Add(api.ExportEnd{Heads: j.heads, Policies: j.policies}), w.Close())
}

// writeArchive writes a file of the entries that follow a head.
func writeArchive(t *testing.T, signer *journal.Signer, after budget.Head, entries ...budget.Entry) (path string) {
	t.Helper()
	path = filepath.Join(t.TempDir(), "archive")
	w, err := journal.NewArchiveWriter(path, after, signer)
	if err != nil {
		t.Fatal(err)
	}
	for _, e := range entries {
		err = errors.Join(err, w.Add(e))
	}
	if _, ends := w.Close(); errors.Join(err, ends) != nil {
		t.Fatal(err, ends)
	}
	return path
}

// leftArchives are files of archives of a ledger that did not end.
func leftArchives(t *testing.T, signer *journal.Signer, file string, j *ledgerExport) map[string]string {
	t.Helper()
	heads, entries := []budget.Head{{Dataset: "d"}}, []budget.Entry{}
	add := func(e budget.Entry, err error) error {
		entries, heads = append(entries, e), append(heads, budget.Head{Dataset: "d", Seq: e.Seq, Hash: e.Hash})
		return err
	}
	_, _, err := journal.ReadArchive(file, signer.Public(), func(_ budget.Head, e budget.Entry, _ journal.Shown) error {
		return add(e, nil)
	})
	for _, shown := range j.entries {
		err = errors.Join(err, add(entryOf(shown)))
	}
	lost := entries[len(entries)-1]
	lost.Seq++
	lost.Hash = journal.HashAfter(lost, lost.Hash)
	err = errors.Join(err, add(lost, nil))
	paths := map[string]string{}
	for _, of := range [][2]int{{1, 1}, {1, 4}, {3, 4}, {3, 6}} {
		name := fmt.Sprintf("%d to %d", of[0], of[1])
		paths[name] = writeArchive(t, signer, heads[of[0]-1], entries[of[0]-1:of[1]]...)
	}
	if err != nil {
		t.Fatal(err)
	}
	return paths
}

// TestVerifyWithArchives: with the file all entries are looked at, without it those that are left; what is missing is named.
func TestVerifyWithArchives(t *testing.T) {
	dir := t.TempDir()
	signer := newSigner(t)
	public, err := journal.PublicKeyText(signer.Public())
	if err != nil {
		t.Fatal(err)
	}
	key, file, export := filepath.Join(dir, "key"), filepath.Join(dir, "file"), filepath.Join(dir, "export")
	j := archivedLedger(t, signer, file)
	var text strings.Builder
	if err := j.write(&text, signer); err != nil {
		t.Fatal(err)
	}
	left := leftArchives(t, signer, file, j)
	for name, content := range map[string]string{key: string(public), export: text.String()} {
		if err := os.WriteFile(name, []byte(content), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	for _, c := range []struct {
		args   []string
		status int
		says   string
	}{
		{[]string{}, exitOK, "d: 3 entries up to 5, head " + j.heads[0].Hash + "; those up to 2 are archived"},
		{[]string{"--archive=" + file, "--public-key=" + key}, exitOK, "d: 5 entries up to 5"},
		{[]string{"--archive=" + left["1 to 1"], "--archive=" + file, "--public-key=" + key}, exitOK,
			left["1 to 1"] + " is not needed: all its entries are in the ledger"},
		{[]string{"--archive=" + left["1 to 4"], "--archive=" + file, "--public-key=" + key}, exitOK, left["1 to 4"] + " is not needed"},
		{[]string{"--archive=" + left["3 to 4"], "--archive=" + file, "--public-key=" + key}, exitOK, left["3 to 4"] + " is not needed"},
		{[]string{"--archive=" + left["3 to 6"], "--archive=" + file, "--public-key=" + key}, exitAbove,
			"has an entry 6 that is not there: the ledger is older than the file"},
		{[]string{"--archive=" + left["1 to 4"], "--public-key=" + key}, exitAbove,
			"the files end with entry 4, and entries up to 2 are archived"},
		{[]string{"--archive=" + file}, exitUsage, "--archive needs --public-key"},
		{[]string{"--archive=" + export, "--public-key=" + key}, exitUsage, "is no archive"},
	} {
		var out bytes.Buffer
		status := Run(t.Context(), append([]string{"audit", "verify", export}, c.args...), Streams{strings.NewReader(""), &out, &out}, nil)
		if status != c.status || !strings.Contains(out.String(), c.says) ||
			status != exitOK && strings.Contains(out.String(), "is not needed") {
			t.Errorf("%v: exit code %d: %s", c.args, status, out.String())
		}
	}
	old := []journal.Receipt{{Dataset: "d", Reservation: "archived with its settlement"}}
	if found := j.verify("d", nil, old, nil); !strings.Contains(found.Broken, "entries up to 2 are archived: give all files") {
		t.Errorf("a receipt of what may be archived: %q", found.Broken)
	}
	given := []archivedFile{{path: file, key: signer.Public(), after: budget.Head{Dataset: "d"}}}
	if found := j.verify("d", given, old, nil); found.Broken == "" ||
		strings.Contains(found.Broken, "archived:") {
		t.Errorf("a receipt of what is nowhere: %q", found.Broken)
	}
	missing := *j
	missing.entries = missing.entries[1:]
	if found := missing.verify("d", given, nil, nil); found.Broken == "" {
		t.Error("an entry is missing behind the file, and nobody says so")
	}
	given[0].after.Seq = 1
	if found := j.verify("d", given, nil, nil); found.Broken == "" {
		t.Error("a file that follows another one is taken as the first")
	}
}

// TestVerifyAttackedWithArchives: a file that gateways signed gives away a ledger that somebody wrote anew, with hashes that fit, whether
// or not its archive ended.
func TestVerifyAttackedWithArchives(t *testing.T) {
	signer := newSigner(t)
	entry := func(seq int64, analyst string) budget.Entry {
		return budget.Entry{Seq: seq, At: time.UnixMicro(seq).UTC(), Kind: budget.EntryImport, Dataset: "d", Analyst: analyst,
			AccountText: []byte(`{"imports_votes_of":"digits","version":1,"source":"a file"}`)}
	}
	// chained gives hashes to entries; those of "old" are older than the chain.
	chained := func(entries ...budget.Entry) []budget.Entry {
		before := [32]byte{}
		for i := range entries {
			if entries[i].Analyst != "old" {
				entries[i].Hash = journal.HashAfter(entries[i], before)
				before = entries[i].Hash
			}
		}
		return entries
	}
	four := chained(entry(1, "a"), entry(2, "b"), entry(3, "c"), entry(4, "d"))
	aged := chained(entry(1, "old"), entry(2, "old"), entry(3, "c"))
	other := chained(entry(1, "old"), entry(2, "old"), entry(3, "c"))
	other[1].AccountText = []byte(`{"imports_votes_of":"letters","version":1,"source":"a file"}`)
	head := func(of []budget.Entry, i int) budget.Head {
		return budget.Head{Dataset: "d", Seq: of[i].Seq, Hash: of[i].Hash}
	}
	for _, c := range []struct {
		what     string
		ledger   []budget.Entry
		after    budget.Head
		file     []budget.Entry
		says, of string // "": nothing is wrong
	}{
		{"nothing was changed", four, budget.Head{}, four[:3], "", ""},
		{"it goes on from a file", four, head(four, 1), four[2:], "", ""},
		{"it ends where the ledger does", four, budget.Head{}, four, "", ""},
		{"an edited entry", chained(entry(1, "a"), entry(2, "eve"), entry(3, "c"), entry(4, "d")), budget.Head{}, four[:3],
			"another entry 2", ""},
		{"an edited entry before a file", chained(entry(1, "a"), entry(2, "eve"), entry(3, "c"), entry(4, "d")), head(four, 1), four[2:3],
			"another entry 2", ""},
		{"a removed entry", chained(entry(1, "a"), entry(3, "c"), entry(4, "d")), budget.Head{}, four[:3], "entry 2 that is not there", ""},
		{"the first entry removed", chained(entry(2, "b"), entry(3, "c"), entry(4, "d")), budget.Head{}, four[:3],
			"entry 1 that is not there", ""},
		{"an entry put in", chained(entry(1, "a"), entry(2, "b"), entry(3, "eve"), entry(4, "c"), entry(5, "d")), budget.Head{}, four[:3],
			"another entry 3", ""},
		{"an older ledger", four[:2], budget.Head{}, four[:3], "entry 3 that is not there", ""},
		{"an older ledger, and a file without entries", four[:2], head(four, 2), nil, "entry 3 that is not there", ""},
		{"no ledger", nil, budget.Head{}, four[:3], "entry 1 that is not there", ""},
		{"another dataset", four, budget.Head{Dataset: "e"}, nil, "", "e"},
		{"older than the chain", aged, budget.Head{}, aged, "", ""},
		{"older than the chain, edited", other, budget.Head{}, aged[:2], "another entry 2", ""},
		{"older than the chain, removed", aged[1:], budget.Head{}, aged[:2], "entry 1 that is not there", ""},
		{"older than the chain, and not there at all", four[:1], budget.Head{}, aged[:2], "another entry 1", ""},
	} {
		j := &ledgerExport{}
		for _, e := range c.ledger {
			j.show(e)
		}
		if c.after.Dataset == "" {
			c.after.Dataset = "d"
		}
		given := archivedFile{path: writeArchive(t, signer, c.after, c.file...), key: signer.Public(), after: c.after}
		found := j.verify("d", []archivedFile{given}, nil, nil)
		switch {
		case c.of != "":
			if names := j.datasets(nil, map[string][]archivedFile{c.of: {given}}); !slices.Contains(names, c.of) {
				t.Errorf("%s: only %v is looked at", c.what, names)
			}
		case c.says == "" && found.Broken != "", !strings.Contains(found.Broken, c.says):
			t.Errorf("%s: %q", c.what, found.Broken)
		}
	}

	// The command, with a ledger from which a whole dataset is gone, and with files that somebody edited.
	dir := t.TempDir()
	public, err := journal.PublicKeyText(signer.Public())
	if err != nil {
		t.Fatal(err)
	}
	key, export, edited := filepath.Join(dir, "key"), filepath.Join(dir, "export"), filepath.Join(dir, "edited")
	file := writeArchive(t, signer, budget.Head{Dataset: "d"}, four[:3]...)
	content, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	var text strings.Builder
	j := &ledgerExport{}
	e := entry(1, "a")
	e.Dataset = "e"
	j.show(chained(e)[0])
	err = errors.Join(j.write(&text, signer), os.WriteFile(key, public, 0o600), os.WriteFile(export, []byte(text.String()), 0o600),
		os.WriteFile(edited, bytes.Replace(content, []byte(`"analyst":"c"`), []byte(`"analyst":"x"`), 1), 0o600))
	if err != nil {
		t.Fatal(err)
	}
	for path, says := range map[string]string{file: "BROKEN: " + file + " has an entry 1 that is not there", edited: "is damaged"} {
		var out bytes.Buffer
		args := []string{"audit", "verify", export, "--archive=" + path, "--public-key=" + key}
		if status := Run(t.Context(), args, Streams{strings.NewReader(""), &out, &out}, nil); status != exitAbove ||
			!strings.Contains(out.String(), says) || !strings.Contains(out.String(), "e: 1 entries up to 1") {
			t.Errorf("%s: exit code %d: %s", path, status, out.String())
		}
	}
}

// TestFilesThatLead: files of archives that did not end are left, whatever the ends and the entries that they share with the others.
func TestFilesThatLead(t *testing.T) {
	signer := newSigner(t)
	heads, entries := []budget.Head{{Dataset: "d"}}, []budget.Entry{}
	for seq := int64(1); seq <= 4; seq++ {
		e := budget.Entry{Seq: seq, At: time.UnixMicro(seq).UTC(), Kind: budget.EntryImport, Dataset: "d", Analyst: "sam",
			AccountText: []byte(`{"imports_votes_of":"digits","version":1,"source":"a file"}`)}
		e.Hash = journal.HashAfter(e, heads[seq-1].Hash)
		entries, heads = append(entries, e), append(heads, budget.Head{Dataset: "d", Seq: seq, Hash: e.Hash})
	}
	type file struct{ after, end int }
	paths := map[file]string{}
	for end := range heads {
		for after := range end + 1 {
			paths[file{after, end}] = writeArchive(t, signer, heads[after], entries[after:end]...)
		}
	}
	for _, c := range []struct {
		to        int
		led, left []file
	}{
		{0, nil, []file{{0, 1}, {1, 3}}},
		{3, []file{{0, 3}}, nil},
		{3, []file{{0, 2}, {2, 3}}, []file{{1, 3}}}, // the file before that one is not there
		{4, []file{{0, 2}, {2, 4}}, []file{{0, 1}, {1, 3}, {3, 3}}},
		{4, []file{{0, 1}, {1, 2}, {2, 4}}, []file{{3, 4}}},
		{2, []file{{0, 2}}, []file{{0, 4}, {2, 2}}},
		{4, []file{{0, 1}, {1, 2}, {3, 4}}, nil}, // none lead there
	} {
		var given []archivedFile
		var want [2][]string
		for i, of := range [][]file{c.led, c.left} {
			for _, f := range of {
				given = append(given, archivedFile{path: paths[f], key: signer.Public(), after: heads[f.after]})
				want[i] = append(want[i], paths[f])
			}
		}
		slices.SortStableFunc(given, func(a, b archivedFile) int { return cmp.Compare(a.after.Seq, b.after.Seq) })
		led, left, err := leadTo(heads[c.to], given)
		var got [2][]string
		for i, of := range [][]archivedFile{led, left} {
			for _, f := range of {
				got[i] = append(got[i], f.path)
			}
			slices.Sort(got[i])
			slices.Sort(want[i])
		}
		if err != nil || !slices.Equal(got[0], want[0]) || !slices.Equal(got[1], want[1]) {
			t.Errorf("%+v: led and left %v, want %v, %v", c, got, want, err)
		}
		if !slices.IsSortedFunc(led, func(a, b archivedFile) int { return cmp.Compare(a.after.Seq, b.after.Seq) }) {
			t.Errorf("%+v: not in the order of their entries: %+v", c, led)
		}
	}
}
