package main

import (
	"bytes"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"noisegate.example/api"
	"noisegate.example/budget"
	"noisegate.example/budget/journal"
)

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
		j.entries = append(j.entries, api.AuditEntry{Seq: e.Seq, At: e.At, Kind: string(e.Kind), Dataset: "d", Subject: "sam",
			AccountIDs: []int64{}, Amounts: api.Amounts{Epsilon: "0", Rho: "0", Delta: "0"}, Account: string(e.AccountText),
			Hash: hex.EncodeToString(e.Hash[:])})
	}
	j.heads = []api.ChainHead{{Dataset: "d", Seq: head.Seq, Hash: hex.EncodeToString(head.Hash[:])}}
	if _, err := w.Close(); err != nil {
		t.Fatal(err)
	}
	return j
}

// leftArchives are files of archives of a ledger that did not end.
func leftArchives(t *testing.T, signer *journal.Signer, file string, j *ledgerExport) map[string]string {
	t.Helper()
	heads, entries := []budget.Head{{Dataset: "d"}}, []budget.Entry{}
	add := func(e budget.Entry, err error) error {
		entries, heads = append(entries, e), append(heads, budget.Head{Dataset: "d", Seq: e.Seq, Hash: e.Hash})
		return err
	}
	_, _, err := journal.ReadArchive(file, signer.Public(), func(_ budget.Head, e budget.Entry, _ *journal.Digest) error {
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
		paths[name] = filepath.Join(t.TempDir(), name)
		w, begins := journal.NewArchiveWriter(paths[name], heads[of[0]-1], signer)
		err = errors.Join(err, begins)
		for _, e := range entries[of[0]-1 : of[1]] {
			err = errors.Join(err, w.Add(e))
		}
		_, ends := w.Close()
		err = errors.Join(err, ends)
	}
	if err != nil {
		t.Fatal(err)
	}
	return paths
}

// TestVerifyWithArchives: with the file all entries are looked at, without it those that are left; what is missing is named.
func TestVerifyWithArchives(t *testing.T) {
	dir := t.TempDir()
	private, err := journal.NewKeyText()
	if err != nil {
		t.Fatal(err)
	}
	signer, err := journal.NewSigner(private)
	if err != nil {
		t.Fatal(err)
	}
	public, err := journal.PublicKeyText(signer.Public())
	if err != nil {
		t.Fatal(err)
	}
	key, file, export := filepath.Join(dir, "key"), filepath.Join(dir, "file"), filepath.Join(dir, "export")
	j := archivedLedger(t, signer, file)
	var text strings.Builder
	if err := j.write(&text); err != nil {
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
			left["1 to 1"] + " is not needed: its archive did not end"},
		{[]string{"--archive=" + left["1 to 4"], "--archive=" + file, "--public-key=" + key}, exitOK, left["1 to 4"] + " is not needed"},
		{[]string{"--archive=" + left["3 to 4"], "--archive=" + file, "--public-key=" + key}, exitOK, left["3 to 4"] + " is not needed"},
		{[]string{"--archive=" + left["3 to 6"], "--archive=" + file, "--public-key=" + key}, exitAbove,
			"ends with an entry 6 that is not there: the ledger is older than the file"},
		{[]string{"--archive=" + left["1 to 4"], "--public-key=" + key}, exitAbove,
			"the files end with entry 4, and entries up to 2 are archived"},
		{[]string{"--archive=" + file}, exitUsage, "--archive needs --public-key"},
		{[]string{"--archive=" + export, "--public-key=" + key}, exitUsage, "is no archive"},
	} {
		var out bytes.Buffer
		status := Run(t.Context(), append([]string{"audit", "verify", export}, c.args...), Streams{strings.NewReader(""), &out, &out}, nil)
		if status != c.status || !strings.Contains(out.String(), c.says) {
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
