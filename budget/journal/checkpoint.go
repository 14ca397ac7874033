package journal

import (
	"crypto/ed25519"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"time"

	"noisegate.example/budget"
)

// Checkpoint is how far a gateway has verified a dataset's ledger, and where its accounts stood there. A start goes on
// from it: what came since is verified before the first answer, and accounts, open charges and plans are compared with
// all entries; entries and answers from before it are verified again while the gateway runs.
type Checkpoint struct {
	// Whole is when the ledger was last verified from its first entry, by the gateway's clock.
	Whole time.Time

	State Replayed
}

// Head is the entry that was verified last.
func (c Checkpoint) Head() budget.Head { return c.State.Head }

// Checkpoints are a file outside the control database, next to the [Anchor]. Only its gateway can have written it: it is signed. An older
// file is as good as a newer one: more has to be verified again.
type Checkpoints struct {
	path   string
	signer *Signer
}

// NewCheckpoints keeps checkpoints at a path.
func NewCheckpoints(path string, signer *Signer) *Checkpoints { return &Checkpoints{path, signer} }

// checkpointsText is the file. The signature is over "noisegate checkpoints/1" and the bytes of Checkpoints as they stand there.
type checkpointsText struct {
	Checkpoints json.RawMessage `json:"checkpoints"`
	Signature   []byte          `json:"signature"`
}

type checkpointText struct {
	Dataset string    `json:"dataset"`
	Seq     int64     `json:"seq"`
	Hash    string    `json:"hash"`
	Whole   time.Time `json:"whole"`
	Replayed
}

func signedCheckpoints(text []byte) []byte { return append([]byte("noisegate checkpoints/1"), text...) }

// Write replaces the file. A reader sees the old or the new one, also after a crash.
func (c *Checkpoints) Write(all []Checkpoint) error {
	texts := make([]checkpointText, len(all))
	for i, p := range all {
		h := p.State.Head
		texts[i] = checkpointText{h.Dataset, h.Seq, hex.EncodeToString(h.Hash[:]), p.Whole.UTC(), p.State}
	}
	text, err := json.Marshal(texts)
	if err != nil {
		return err
	}
	file, err := json.Marshal(checkpointsText{text, ed25519.Sign(c.signer.key, signedCheckpoints(text))})
	if err != nil {
		return err
	}
	return replaceFile(c.path, file)
}

// Read gives the checkpoints in the file: none while there is no file, an error when it cannot be read or was not
// written with the signer's key.
func (c *Checkpoints) Read() ([]Checkpoint, error) {
	data, err := os.ReadFile(c.path)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("budget: the checkpoints cannot be read: %w", err)
	}
	var file checkpointsText
	var texts []checkpointText
	if err := json.Unmarshal(data, &file); err != nil || !ed25519.Verify(c.signer.Public(), signedCheckpoints(file.Checkpoints),
		file.Signature) {
		return nil, fmt.Errorf("budget: the checkpoints %s were not signed with this gateway's key", c.path)
	}
	if err := json.Unmarshal(file.Checkpoints, &texts); err != nil {
		return nil, fmt.Errorf("budget: the checkpoints %s are damaged: %w", c.path, err)
	}
	all := make([]Checkpoint, len(texts))
	for i, t := range texts {
		all[i] = Checkpoint{t.Whole, t.Replayed}
		all[i].State.Head = budget.Head{Dataset: t.Dataset, Seq: t.Seq}
		if all[i].State.Head.Hash, err = hash32(t.Hash); err != nil {
			return nil, err
		}
	}
	return all, nil
}
