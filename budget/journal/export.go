package journal

import (
	"bufio"
	"bytes"
	"crypto/ed25519"
	"crypto/sha256"
	"encoding/json"
	"errors"
	"fmt"
	"hash"
	"io"
)

// signedLines is the last line of a file: a signature over a title, which says what kind of file it is, and the SHA-256 of all lines
// before.
type signedLines struct {
	SHA256    Digest `json:"sha256"`
	Key       string `json:"key"`
	Signature []byte `json:"signature"`
}

// signedLinesBegin begins it. No other line of such a file begins so.
var signedLinesBegin = []byte(`{"sha256":`)

const (
	archiveTitle = "noisegate archive/1"
	exportTitle  = "noisegate export/1"
)

func (s *Signer) signLines(title string, sum Digest) ([]byte, error) {
	text, err := json.Marshal(signedLines{sum, s.id, ed25519.Sign(s.key, append([]byte(title), sum[:]...))})
	return append(text, '\n'), err
}

// holds reports whether a key signed the line.
func (l signedLines) holds(title string, key ed25519.PublicKey) bool {
	return l.Key == KeyID(key) && ed25519.Verify(key, append([]byte(title), l.SHA256[:]...), l.Signature)
}

// readSigned hands on the lines before the signature, without their ends, and gives it; nil where the lines end without one. It makes sure
// that they are those that it is over, and that nothing follows it. Nothing of them is to be believed before.
func readSigned(r io.Reader, each func(line []byte) error) (*signedLines, error) {
	lines, whole := bufio.NewReaderSize(r, 1<<20), sha256.New()
	for {
		line, err := lines.ReadBytes('\n')
		switch {
		case err == io.EOF && len(line) == 0:
			return nil, nil
		case err == io.EOF:
			return nil, errors.New("it was cut off")
		case err != nil:
			return nil, err
		}
		if !bytes.HasPrefix(line, signedLinesBegin) {
			whole.Write(line)
			if err := each(line[:len(line)-1]); err != nil {
				return nil, err
			}
			continue
		}
		var last signedLines
		if err := strictly(line, &last); err != nil || last.SHA256 != Digest(whole.Sum(nil)) {
			return nil, ErrChanged
		}
		if _, err := lines.ReadByte(); err != io.EOF {
			return nil, fmt.Errorf("%w: it goes on after its signature", ErrChanged)
		}
		return &last, nil
	}
}

// strictly reads a line that is one JSON value without members that nobody knows.
func strictly(line []byte, into any) error {
	decoder := json.NewDecoder(bytes.NewReader(line))
	decoder.DisallowUnknownFields()
	if err := decoder.Decode(into); err != nil {
		return err
	}
	if _, err := decoder.Token(); err != io.EOF {
		return errors.New("there is more than one value on a line")
	}
	return nil
}

// ExportWriter writes an export of journals: lines of JSON, and last, with a signer, a line that signs them.
type ExportWriter struct {
	buffer *bufio.Writer
	sum    hash.Hash
	signer *Signer
	lines  *json.Encoder
}

// NewExportWriter begins an export; without a signer (nil) it will not be signed.
func NewExportWriter(to io.Writer, signer *Signer) *ExportWriter {
	w := &ExportWriter{buffer: bufio.NewWriterSize(to, 1<<16), sum: sha256.New(), signer: signer}
	w.lines = json.NewEncoder(io.MultiWriter(w.buffer, w.sum))
	w.lines.SetEscapeHTML(false)
	return w
}

// Add writes a line.
func (w *ExportWriter) Add(line any) error { return w.lines.Encode(line) }

// Close signs the lines, and hands on what is left to write.
func (w *ExportWriter) Close() error {
	if w.signer != nil {
		last, err := w.signer.signLines(exportTitle, Digest(w.sum.Sum(nil)))
		if err != nil {
			return err
		}
		if _, err := w.buffer.Write(last); err != nil {
			return err
		}
	}
	return w.buffer.Flush()
}

// ExportSignature is the last line of an export; nil: it has none.
type ExportSignature struct{ last signedLines }

// ErrChanged says that lines are not those that their signature is over.
var ErrChanged = errors.New("it is not what was signed")

// ErrUnsigned says that an export has no signature.
var ErrUnsigned = errors.New("budget: the export is not signed")

// Check compares the signature with a gateway's public key. For an export that has none it is [ErrUnsigned].
func (s *ExportSignature) Check(public ed25519.PublicKey) error {
	switch {
	case s == nil:
		return ErrUnsigned
	case s.last.Key != KeyID(public):
		return fmt.Errorf("budget: the export was signed with the key %s, and not with %s", s.last.Key, KeyID(public))
	case !s.last.holds(exportTitle, public):
		return errors.New("budget: the signature of the export does not match")
	}
	return nil
}

// ReadExport hands on the lines of an export but the last, its signature, which it gives (nil: there is none). That the lines are those
// that were signed is checked; by whom is for [ExportSignature.Check]. They must not be believed before.
func ReadExport(r io.Reader, each func(line []byte) error) (*ExportSignature, error) {
	last, err := readSigned(r, each)
	if err != nil || last == nil {
		return nil, err
	}
	return &ExportSignature{*last}, nil
}

// ReadLine reads a line of an export: one JSON value without unknown members.
func ReadLine(line []byte, into any) error { return strictly(line, into) }
