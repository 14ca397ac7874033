package journal

import (
	"bufio"
	"crypto/ed25519"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"hash"
	"io"
	"os"
	"path/filepath"
	"time"

	"noisegate.example/budget"
	"noisegate.example/mechanisms"
)

// Archived is what the chain says of entries that were moved to a file: the entry of kind [budget.EntryArchive] has it
// as its text. The ledger that remains goes on from Seq.
type Archived struct {
	Dataset string    `json:"-"`
	Seq     int64     `json:"archived_to"` // of the last entry in the file
	Hash    Digest    `json:"hash"`        // of that entry
	At      time.Time `json:"at"`          // of that entry; all charges that were opened until then had ended
	After   int64     `json:"after"`       // of the entry before the first one in the file; 0: there is none
	Entries int       `json:"entries"`
	File    Digest    `json:"file_sha256"`  // of all its lines but the last, the signature
	State   Digest    `json:"state_sha256"` // of the state after the last entry, as the ledger keeps it
	Kept    Digest    `json:"kept_sha256"`  // of the charges and entries from before that stay, as the ledger computes it
}

// Head is the entry that the rest goes on from.
func (a Archived) Head() budget.Head {
	return budget.Head{Dataset: a.Dataset, Seq: a.Seq, Hash: a.Hash}
}

// StateOf reads the state at the end of the file, as the ledger keeps it, and makes sure that it is the one that the chain speaks of.
func (a Archived) StateOf(text string) (Replayed, error) {
	s := NewReplayed(a.Dataset)
	if sha256.Sum256([]byte(text)) != a.State || json.Unmarshal([]byte(text), &s) != nil {
		return s, &BrokenError{Dataset: a.Dataset, Seq: a.Seq, What: "what is kept of its archive is not what was archived"}
	}
	s.Head = a.Head()
	return s, nil
}

// Digest is a SHA-256, in JSON 64 hexadecimal digits.
type Digest [32]byte

// MarshalText implements encoding.TextMarshaler.
func (d Digest) MarshalText() ([]byte, error) { return []byte(hex.EncodeToString(d[:])), nil }

// UnmarshalText implements encoding.TextUnmarshaler.
func (d *Digest) UnmarshalText(text []byte) (err error) {
	*d, err = hash32(string(text))
	return err
}

// ArchiveOf reads what an entry says of a file; ok is false for an entry that is of none.
func ArchiveOf(e budget.Entry) (a Archived, ok bool) {
	if e.Kind != budget.EntryArchive || json.Unmarshal(e.AccountText, &a) != nil || a.Seq < 1 || a.Seq >= e.Seq || a.After >= a.Seq ||
		len(e.AccountIDs) != 0 || e.Reservation != "" {
		return Archived{}, false
	}
	a.Dataset = e.Dataset
	return a, true
}

// archivedEntry is a line of an archive: all that is hashed of an entry, and its hash.
type archivedEntry struct {
	Seq         int64                `json:"seq"`
	At          int64                `json:"at_us"`
	Kind        budget.EntryKind     `json:"kind"`
	Analyst     string               `json:"analyst"`
	Reservation budget.ReservationID `json:"id,omitempty"`
	Accounts    []int64              `json:"accounts,omitempty"`
	Loss        mechanisms.Loss      `json:"loss"`
	Shared      *mechanisms.Loss     `json:"shared,omitempty"`
	Digest      string               `json:"digest,omitempty"`
	Mechanisms  *string              `json:"mechanisms,omitempty"`
	Account     *string              `json:"account,omitempty"`
	Hash        Digest               `json:"hash"`
	// Receipt is a settlement's head as receipts show it ([Signer.Opaque]), and Opening opens its commitment ([Signer.Opening]).
	Receipt *Digest `json:"receipt_head,omitempty"`
	Opening *Digest `json:"receipt_opening,omitempty"` // missing in old files
}

func textOf(text []byte) *string {
	if len(text) == 0 {
		return nil
	}
	return new(string(text))
}

func bytesOf(text *string) []byte {
	if text == nil {
		return nil
	}
	return []byte(*text)
}

// shown gives a settlement as receipts show it; missing members are zero.
func (l archivedEntry) shown() (s Shown) {
	if l.Receipt != nil {
		s.Head = *l.Receipt
	}
	if l.Opening != nil {
		s.Opening = *l.Opening
	}
	return s
}

func (l archivedEntry) entry(dataset string) (budget.Entry, error) {
	e := budget.Entry{Seq: l.Seq, At: time.UnixMicro(l.At).UTC(), Kind: l.Kind, Dataset: dataset, Analyst: l.Analyst,
		Reservation: l.Reservation,
		AccountIDs:  l.Accounts, Loss: l.Loss, Shared: l.Shared, MechanismText: bytesOf(l.Mechanisms),
		AccountText: bytesOf(l.Account), Hash: l.Hash}
	if l.Digest == "" {
		return e, nil
	}
	var err error
	e.Digest, err = hex.DecodeString(l.Digest)
	return e, err
}

// archiveHeader is the first line.
type archiveHeader struct {
	Format  int    `json:"archive"` // 1
	Dataset string `json:"dataset"`
	After   int64  `json:"after"`
	Hash    Digest `json:"hash"` // of the entry After; zero for none
}

// ArchiveWriter writes entries to a file that does not exist yet. Nothing is there under its name before [ArchiveWriter.Close].
type ArchiveWriter struct {
	path   string
	signer *Signer
	file   *os.File
	buffer *bufio.Writer
	sum    hash.Hash
	lines  *json.Encoder
}

// NewArchiveWriter begins a file of the entries that follow a head; the empty one stands for the beginning.
func NewArchiveWriter(path string, after budget.Head, signer *Signer) (*ArchiveWriter, error) {
	file, err := os.CreateTemp(filepath.Dir(path), filepath.Base(path)+".unfinished-")
	if err != nil {
		return nil, err
	}
	w := &ArchiveWriter{path: path, signer: signer, file: file, sum: sha256.New()}
	w.buffer = bufio.NewWriterSize(io.MultiWriter(file, w.sum), 1<<20)
	w.lines = json.NewEncoder(w.buffer)
	return w, w.lines.Encode(archiveHeader{1, after.Dataset, after.Seq, after.Hash})
}

// Add writes an entry.
func (w *ArchiveWriter) Add(e budget.Entry) error {
	l := archivedEntry{Seq: e.Seq, At: e.At.UnixMicro(), Kind: e.Kind, Analyst: e.Analyst, Reservation: e.Reservation, Accounts: e.AccountIDs,
		Loss: e.Loss, Shared: e.Shared, Digest: hex.EncodeToString(e.Digest), Mechanisms: textOf(e.MechanismText), Account: textOf(e.AccountText),
		Hash: e.Hash}
	if e.Kind == budget.EntrySettle {
		shown := w.signer.Shown(e)
		l.Receipt, l.Opening = &shown.Head, &shown.Opening
	}
	return w.lines.Encode(l)
}

// Close signs the file, has the disk take it, and gives it its name. It returns the digest that was signed.
func (w *ArchiveWriter) Close() (sum Digest, err error) {
	defer func() {
		if err != nil {
			w.Discard()
		}
	}()
	if err := w.buffer.Flush(); err != nil {
		return sum, err
	}
	w.sum.Sum(sum[:0])
	last, err := w.signer.signLines(archiveTitle, sum)
	if err != nil {
		return sum, err
	}
	_, err = w.file.Write(last)
	if err = errors.Join(err, w.file.Sync(), w.file.Close()); err != nil {
		return sum, err
	}
	if err := os.Link(w.file.Name(), w.path); err != nil { // unlike a rename it replaces nothing
		return sum, err
	}
	return sum, errors.Join(os.Remove(w.file.Name()), SyncArchive(w.path))
}

// SyncArchive flushes a file and its name to disk. The process that wrote it may have been killed before it did.
func SyncArchive(path string) error {
	for _, name := range []string{path, filepath.Dir(path)} {
		file, err := os.Open(name)
		if err != nil {
			return err
		}
		if err := errors.Join(file.Sync(), file.Close()); err != nil {
			return err
		}
	}
	return nil
}

// Discard removes what was written.
func (w *ArchiveWriter) Discard() {
	_ = w.file.Close()
	_ = os.Remove(w.file.Name())
}

// ReadArchiveHeader says which head the entries of a file follow. Nothing of it is signed before [ReadArchive] says so.
func ReadArchiveHeader(path string) (after budget.Head, err error) {
	file, err := os.Open(path)
	if err != nil {
		return after, err
	}
	defer file.Close()
	var header archiveHeader
	if err := json.NewDecoder(file).Decode(&header); err != nil || header.Format != 1 {
		return after, fmt.Errorf("budget: %s is no archive", path)
	}
	return budget.Head{Dataset: header.Dataset, Seq: header.After, Hash: header.Hash}, nil
}

// ReadArchive reads a file and hands on its entries in their order, each with the head that the file follows and, of settlements, with what
// receipts show. It returns the head that they follow and the digest that was signed with the key. That the entries are a chain is for
// [Chain] to say; they must not be believed before ReadArchive returns.
func ReadArchive(path string, key ed25519.PublicKey, each func(budget.Head, budget.Entry, Shown) error) (after budget.Head, sum Digest,
	err error) {
	file, err := os.Open(path)
	if err != nil {
		return after, sum, err
	}
	defer file.Close()
	var header *archiveHeader
	var refused error // by each
	last, err := readSigned(file, func(line []byte) error {
		if header == nil {
			header = new(archiveHeader)
			if err := strictly(line, header); err != nil || header.Format != 1 {
				return errors.New("its first line is no archive's")
			}
			after = budget.Head{Dataset: header.Dataset, Seq: header.After, Hash: header.Hash}
			return nil
		}
		var l archivedEntry
		if err := strictly(line, &l); err != nil {
			return err
		}
		e, err := l.entry(header.Dataset)
		if err == nil {
			refused = each(after, e, l.shown())
			err = refused
		}
		return err
	})
	switch {
	case refused != nil:
		return after, sum, refused
	case err == nil && last == nil:
		err = errors.New("it was cut off")
	case err == nil && header == nil:
		err = errors.New("it is not what was signed")
	}
	if err != nil {
		return after, sum, fmt.Errorf("budget: the archive %s is damaged: %w", path, err)
	}
	if !last.holds(archiveTitle, key) {
		return after, sum, fmt.Errorf("budget: the archive %s was not signed with this key", path)
	}
	return after, last.SHA256, nil
}
