package journal

import (
	"bytes"
	"crypto/ed25519"
	"encoding/pem"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"noisegate.example/budget"
	"noisegate.example/internal/fault"
)

// StewardKeys are the public keys of those who may raise caps, and approve what takes two stewards.
type StewardKeys []StewardKey

// StewardKey is a steward's public key. Its owner is known by the subject of their tokens; "": it signs refills, and nothing that takes
// two.
type StewardKey struct {
	Steward string
	Public  ed25519.PublicKey
}

// String is the key as it is known; with whose it is, where that is said.
func (k StewardKey) String() string {
	if k.Steward == "" {
		return KeyID(k.Public)
	}
	return k.Steward + "=" + KeyID(k.Public)
}

// stewardLine begins the line before a key that says whose it is.
const stewardLine = "steward:"

// ParseStewardKeys reads public keys as PEM texts, one after another. A line "steward: NAME" before a key says whose it is. No key is two
// people's: one of them could sign as both.
func ParseStewardKeys(text []byte) (keys StewardKeys, err error) {
	for len(strings.TrimSpace(string(text))) > 0 {
		block, rest := pem.Decode(text)
		if block == nil {
			return nil, errors.New("budget: what follows the public keys is no PEM text")
		}
		begin := bytes.LastIndex(text[:len(text)-len(rest)], []byte("-----BEGIN "))
		name, err := stewardBefore(string(text[:begin]))
		if err != nil {
			return nil, err
		}
		public, err := ParsePublicKey(pem.EncodeToMemory(block))
		if err != nil {
			return nil, err
		}
		if slices.ContainsFunc(keys, func(k StewardKey) bool { return k.Public.Equal(public) }) {
			return nil, fmt.Errorf("budget: the key %s is given twice", KeyID(public))
		}
		keys, text = append(keys, StewardKey{name, public}), rest
	}
	if len(keys) == 0 {
		return nil, errors.New("budget: there is no public key")
	}
	return keys, nil
}

// stewardBefore reads whose key follows a text; "" where it does not say.
func stewardBefore(text string) (name string, err error) {
	for line := range strings.Lines(text) {
		line = strings.TrimSpace(line)
		after, names := strings.CutPrefix(line, stewardLine)
		switch {
		case strings.HasPrefix(line, "-----"):
			return "", errors.New("budget: a PEM text before a public key cannot be read")
		case names && (name != "" || strings.TrimSpace(after) == ""):
			return "", errors.New("budget: one line says whose a key is: steward: NAME")
		case names:
			name = strings.TrimSpace(after)
		}
	}
	return name, nil
}

// Stewards are those whose keys are named, sorted, each once.
func (k StewardKeys) Stewards() (names []string) {
	for _, key := range k {
		if key.Steward != "" {
			names = append(names, key.Steward)
		}
	}
	slices.Sort(names)
	return slices.Compact(names)
}

// signed reports whether one of the keys signed a text. With a name it has to be one of theirs.
func (k StewardKeys) signed(text []byte, by seal) bool {
	return slices.ContainsFunc(k, func(key StewardKey) bool {
		return (by.steward == "" || key.Steward == by.steward) && KeyID(key.Public) == by.key && ed25519.Verify(key.Public, text, by.signature)
	})
}

// seal is a signature, and whose it says that it is.
type seal struct {
	steward, key string
	signature    []byte
}

// Check refuses a refill that none of the keys signed (budget/signature).
func (k StewardKeys) Check(r budget.Refill) error {
	if r.Mandate == nil {
		return fault.BudgetSignature("this dataset takes refills only with a steward's signature")
	}
	return k.checkMandate(*r.Mandate, r.Text())
}

// CheckLimit refuses a change of a limit that none of the keys signed (budget/signature).
func (k StewardKeys) CheckLimit(c budget.LimitChange) error {
	return k.checkMandate(c.Mandate, c.Text())
}

// CheckSetBack refuses to set a dataset's time back where none of the keys signed that (budget/signature).
func (k StewardKeys) CheckSetBack(c budget.SetBack) error {
	return k.checkMandate(*c.Mandate, c.Text())
}

func (k StewardKeys) checkMandate(m budget.Mandate, text []byte) error {
	if m.Pair != (budget.Pair{}) {
		if err := m.ByTwo(m.Pair.Proposer); err != nil {
			return err
		}
		if !slices.Contains(k.Stewards(), m.Pair.Proposer) {
			return fault.BudgetSignature("the configuration of the dataset does not name its proposer among the stewards")
		}
	}
	if !k.signed(text, seal{m.Pair.Approver, m.Key, m.Signature}) {
		return fault.BudgetSignature("none of the stewards' keys signed this, or not that of the steward who is said to have")
	}
	return nil
}

// CheckPolicy refuses a change of a policy that no second steward signed (policy/signature); by is who makes it. Who makes it with
// no steward's token proves to be the proposer by a signature too.
func (k StewardKeys) CheckPolicy(c budget.PolicyChange, by string) error {
	a := c.Approval
	switch text := c.Text(); {
	case a.Proposer == a.Approver || a.Proposer == "" || a.Approver == "":
		return fault.PolicySignature("two stewards are needed: one who proposes, and another who signs")
	case !slices.Contains(k.Stewards(), a.Proposer):
		return fault.PolicySignature("the configuration of the dataset does not name its proposer among the stewards")
	case !k.signed(text, seal{a.Approver, a.Key, a.Signature}):
		return fault.PolicySignature("it is not signed by the steward who is said to have, or another text or version of the policy is")
	case len(a.ProposerSignature) > 0 && !k.signed(text, seal{a.Proposer, a.ProposerKey, a.ProposerSignature}):
		return fault.PolicySignature("the proposer did not sign it")
	case len(a.ProposerSignature) == 0 && a.Proposer != by:
		return fault.PolicySignature("it was signed for a change that somebody else proposes")
	}
	return nil
}

// SignRefill signs a refill that has a mandate without a signature.
func (s *Signer) SignRefill(r budget.Refill) budget.Refill {
	r.Mandate = s.mandate(*r.Mandate)
	r.Mandate.Signature = ed25519.Sign(s.key, r.Text())
	return r
}

// SignLimit signs a change of a limit as the second steward.
func (s *Signer) SignLimit(c budget.LimitChange) budget.LimitChange {
	c.Mandate = *s.mandate(c.Mandate)
	c.Mandate.Signature = ed25519.Sign(s.key, c.Text())
	return c
}

// SignSetBack signs from when a dataset's time goes on, as the second steward. It has a mandate.
func (s *Signer) SignSetBack(c budget.SetBack) budget.SetBack {
	c.Mandate = s.mandate(*c.Mandate)
	c.Mandate.Signature = ed25519.Sign(s.key, c.Text())
	return c
}

func (s *Signer) mandate(m budget.Mandate) *budget.Mandate {
	m.At, m.Key = m.At.UTC().Truncate(time.Second), s.id
	return &m
}

// SignPolicy signs a change of a policy as the second steward.
func (s *Signer) SignPolicy(c budget.PolicyChange) budget.Approval {
	a := *c.Approval
	a.At, a.Key = a.At.UTC().Truncate(time.Second), s.id
	c.Approval = &a
	a.Signature = ed25519.Sign(s.key, c.Text())
	return a
}

// ProposePolicy signs a change of a policy, which a second steward signed, as the proposer.
func (s *Signer) ProposePolicy(c budget.PolicyChange) budget.Approval {
	a := *c.Approval
	a.ProposerKey, a.ProposerSignature = s.id, ed25519.Sign(s.key, c.Text())
	return a
}
