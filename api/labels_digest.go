package api

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"slices"
)

// LabelsDigest identifies what was released of queries. It is SHA-256, in hexadecimal, over one line for each, sorted bytewise, of JSON
// [query, status, label, histogram] and a newline. The release of a charge for labels shows it as labels_sha256, over the labels that the
// charge bought, so that their holder can compare them (those that are not replayed) with it, and by the receipt with the ledger.
func LabelsDigest(labels []Label) (string, error) {
	lines := make([]string, len(labels))
	for i, l := range labels {
		line, err := json.Marshal([]any{l.Query, l.Status, l.Label, l.Histogram})
		if err != nil {
			return "", err
		}
		lines[i] = string(line) + "\n"
	}
	slices.Sort(lines)
	h := sha256.New()
	for _, line := range lines {
		h.Write([]byte(line))
	}
	return hex.EncodeToString(h.Sum(nil)), nil
}
