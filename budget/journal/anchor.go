package journal

import (
	"cmp"
	"context"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"time"

	"noisegate.example/budget"
)

// Anchor is a small file outside the control database, with the newest head of each chain that the gateway saw. A ledger that was put back
// to an older state lacks the entry that the anchor names, and so is found, even if a superuser put it back.
//
// It is written each second and at shutdown, not before each answer: an older state of less than a second is not found by it. The receipts
// that went out meanwhile name their heads as well.
type Anchor struct {
	path string
}

// NewAnchor keeps an anchor at a path.
func NewAnchor(path string) *Anchor { return &Anchor{path: path} }

// Server is the line of states that a server of the control database is on: its cluster, and the timeline, which
// a standby that takes over counts up. The zero value is none.
type Server struct {
	System   int64 `json:"system"` // the cluster's identifier
	Timeline int64 `json:"timeline"`
}

// Anchored is what an anchor remembers.
type Anchored struct {
	Server Server        // that the gateway wrote to last; none in files from before 2026-11-26
	Heads  []budget.Head // the newest of each chain, whichever gateway wrote it
}

// anchorText is the file.
type anchorText struct {
	Server Server         `json:"server,omitzero"`
	Chains []anchoredHead `json:"chains"`
}

type anchoredHead struct {
	Dataset string `json:"dataset"`
	Seq     int64  `json:"seq"`
	Hash    string `json:"hash"`
}

// Read gives what is in the file: nothing while there is no file, an error when it cannot be read.
func (a *Anchor) Read() (Anchored, error) {
	data, err := os.ReadFile(a.path)
	if errors.Is(err, fs.ErrNotExist) {
		return Anchored{}, nil
	}
	if err != nil {
		return Anchored{}, fmt.Errorf("budget: the anchor cannot be read: %w", err)
	}
	var text anchorText
	if err := json.Unmarshal(data, &text); err != nil {
		return Anchored{}, fmt.Errorf("budget: the anchor %s is damaged: %w", a.path, err)
	}
	heads := make([]budget.Head, len(text.Chains))
	for i, c := range text.Chains {
		heads[i] = budget.Head{Dataset: c.Dataset, Seq: c.Seq}
		if heads[i].Hash, err = hash32(c.Hash); err != nil {
			return Anchored{}, fmt.Errorf("budget: the anchor %s is damaged: %w", a.path, err)
		}
	}
	return Anchored{text.Server, heads}, nil
}

// Write replaces the file. A reader sees the old or the new one, also after a crash.
func (a *Anchor) Write(what Anchored) error {
	text := anchorText{Server: what.Server}
	for _, h := range slices.SortedFunc(slices.Values(what.Heads), func(a, b budget.Head) int { return cmp.Compare(a.Dataset, b.Dataset) }) {
		text.Chains = append(text.Chains, anchoredHead{h.Dataset, h.Seq, hex.EncodeToString(h.Hash[:])})
	}
	data, err := json.MarshalIndent(text, "", "\t")
	if err != nil {
		return err
	}
	return replaceFile(a.path, append(data, '\n'))
}

// replaceFile replaces a file by another, as a whole.
func replaceFile(path string, data []byte) (err error) {
	dir := filepath.Dir(path)
	file, err := os.CreateTemp(dir, ".anchor-")
	if err != nil {
		return err
	}
	defer func() { _ = os.Remove(file.Name()) }() // nothing, once it is renamed
	_, err = file.Write(data)
	if err = errors.Join(err, file.Sync(), file.Close()); err != nil {
		return err
	}
	if err := os.Rename(file.Name(), path); err != nil {
		return err
	}
	directory, err := os.Open(dir)
	if err != nil {
		return err
	}
	return errors.Join(directory.Sync(), directory.Close())
}

// Keep writes what is newest every so often until the context ends, and once more then. It reports failures and goes on.
func (a *Anchor) Keep(ctx context.Context, every time.Duration, newest func() Anchored, failed func(error)) {
	tick := time.NewTicker(every)
	defer tick.Stop()
	var written Anchored
	for done := false; !done; {
		select {
		case <-tick.C:
		case <-ctx.Done():
			done = true
		}
		now := newest()
		slices.SortFunc(now.Heads, func(a, b budget.Head) int { return cmp.Compare(a.Dataset, b.Dataset) })
		if now.Server == written.Server && slices.Equal(now.Heads, written.Heads) {
			continue
		}
		if err := a.Write(now); err != nil {
			failed(err)
			continue
		}
		written = now
	}
}
