package journal

import (
	"crypto/ed25519"
	"encoding/pem"
	"errors"
	"strings"
	"time"

	"noisegate.example/budget"
	"noisegate.example/internal/fault"
)

// StewardKeys are the public keys of those who may raise caps.
type StewardKeys []ed25519.PublicKey

// ParseStewardKeys reads public keys as PEM texts, one after another.
func ParseStewardKeys(text []byte) (keys StewardKeys, err error) {
	for len(strings.TrimSpace(string(text))) > 0 {
		block, rest := pem.Decode(text)
		if block == nil {
			return nil, errors.New("budget: what follows the public keys is no PEM text")
		}
		key, err := ParsePublicKey(pem.EncodeToMemory(block))
		if err != nil {
			return nil, err
		}
		keys, text = append(keys, key), rest
	}
	if len(keys) == 0 {
		return nil, errors.New("budget: there is no public key")
	}
	return keys, nil
}

// Check refuses a refill that none of the keys signed (budget/signature).
func (k StewardKeys) Check(r budget.Refill) error {
	if r.Mandate == nil {
		return fault.BudgetSignature("this dataset takes refills only with a steward's signature")
	}
	for _, key := range k {
		if KeyID(key) == r.Mandate.Key && ed25519.Verify(key, r.Text(), r.Mandate.Signature) {
			return nil
		}
	}
	return fault.BudgetSignature("none of the stewards' keys signed this refill")
}

// SignRefill signs a refill that has a mandate without a signature.
func (s *Signer) SignRefill(r budget.Refill) budget.Refill {
	mandate := *r.Mandate
	mandate.At = mandate.At.UTC().Truncate(time.Second)
	mandate.Key = s.id
	r.Mandate = &mandate
	mandate.Signature = ed25519.Sign(s.key, r.Text())
	return r
}
