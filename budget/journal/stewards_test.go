package journal_test

import (
	"crypto/ed25519"
	"crypto/rand"
	"encoding/pem"
	"slices"
	"strings"
	"testing"
	"time"

	"noisegate.example/budget"
	"noisegate.example/budget/journal"
	"noisegate.example/internal/fault"
	"noisegate.example/mechanisms"
)

// What a steward signs is what a steward can read.
func TestRefillText(t *testing.T) {
	r := budget.Refill{
		Account: budget.AccountID{Dataset: "census", Scope: budget.AnalystScope, Name: "ana"},
		Epsilon: mechanisms.EpsilonUnit / 2, Delta: 1_000_000_000, Reason: "the survey's\nsecond wave",
		Mandate: &budget.Mandate{Number: 3, Lifetime: budget.Promise{Epsilon: 7 * mechanisms.EpsilonUnit / 2, Delta: 101_000_000_000,
			Bounded: true},
			At: time.Date(2026, 11, 21, 17, 0, 0, 0, time.UTC)},
	}
	const want = `noisegate refill/1
dataset: "census"
account: "analyst:ana"
number of the refill: 3
adds epsilon: 0.5
adds rho: 0
adds delta: 1e-9
lifetime epsilon afterwards: 3.5
lifetime delta afterwards: 1.01e-7
reason: "the survey's\nsecond wave"
signed at: 2026-11-21T17:00:00Z
`
	if got := string(r.Text()); got != want {
		t.Errorf("got\n%s", got)
	}
	r.Mandate.Ledger = strings.Repeat("0a", 32)
	named := strings.Replace(want, "refill/1\n", "refill/3\nledger: \""+r.Mandate.Ledger+"\"\n", 1)
	if got := string(r.Text()); got != named {
		t.Errorf("got\n%s", got)
	}
}

// A signature is one of a listed key, over all that the refill is.
func TestStewardKeys(t *testing.T) {
	signers, texts := make([]*journal.Signer, 2), []byte{}
	for i := range signers {
		public, private, err := ed25519.GenerateKey(rand.Reader)
		if err != nil {
			t.Fatal(err)
		}
		if signers[i], err = journal.NewSigner(keyText(t, private)); err != nil {
			t.Fatal(err)
		}
		text, err := journal.PublicKeyText(public)
		if err != nil {
			t.Fatal(err)
		}
		texts = append(append(texts, text...), "\n"...)
	}
	both, err := journal.ParseStewardKeys(texts)
	if err != nil || len(both) != 2 {
		t.Fatal(both, err)
	}
	refill := func() budget.Refill {
		return budget.Refill{Account: budget.AccountID{Dataset: "d", Scope: budget.DatasetScope}, Epsilon: 1, Reason: "r",
			Mandate: &budget.Mandate{Number: 1, Lifetime: budget.Promise{Epsilon: 2, Bounded: true}, At: time.Unix(1_800_000_000, 999)}}
	}
	for i, s := range signers {
		if err := both.Check(s.SignRefill(refill())); err != nil {
			t.Errorf("key %d: %v", i, err)
		}
	}
	for name, change := range map[string]func(*budget.Refill){
		"dataset": func(r *budget.Refill) { r.Account.Dataset = "e" },
		"account": func(r *budget.Refill) { r.Account.Scope, r.Account.Name = budget.GroupScope, "x" },
		"epsilon": func(r *budget.Refill) { r.Epsilon++ }, "rho": func(r *budget.Refill) { r.Rho++ },
		"delta":  func(r *budget.Refill) { r.Delta++ },
		"reason": func(r *budget.Refill) { r.Reason = "" }, "number": func(r *budget.Refill) { r.Mandate.Number++ },
		"lifetime":         func(r *budget.Refill) { r.Mandate.Lifetime.Epsilon++ },
		"lifetime's delta": func(r *budget.Refill) { r.Mandate.Lifetime.Delta++ },
		"bounds":           func(r *budget.Refill) { r.Mandate.Lifetime.Bounded = false },
		"time":             func(r *budget.Refill) { r.Mandate.At = r.Mandate.At.Add(time.Second) },
		"key":              func(r *budget.Refill) { r.Mandate.Key = journal.KeyID(signers[1].Public()) },
		"signature":        func(r *budget.Refill) { r.Mandate.Signature[9]++ }, "nothing at all": func(r *budget.Refill) { r.Mandate = nil },
	} {
		r := signers[0].SignRefill(refill())
		change(&r)
		if err := both.Check(r); fault.CodeOf(err) != fault.CodeBudgetSignature {
			t.Errorf("%s: %v", name, err)
		}
	}
	if err := both[1:].Check(signers[0].SignRefill(refill())); fault.CodeOf(err) != fault.CodeBudgetSignature {
		t.Errorf("a key that is not listed: %v", err)
	}
	for _, text := range [][]byte{nil, []byte("x"), append(texts, 'x'),
		pem.EncodeToMemory(&pem.Block{Type: "PUBLIC KEY", Bytes: []byte("x")})} {
		if _, err := journal.ParseStewardKeys(text); err == nil {
			t.Errorf("%q are keys", text)
		}
	}
}

// Whose a key is says the line before it, once; no key is two people's, and a text that cannot be read hands nobody the next one's key.
func TestNamesOfStewards(t *testing.T) {
	texts := make([]string, 2)
	for i := range texts {
		public, _, err := ed25519.GenerateKey(rand.Reader)
		if err != nil {
			t.Fatal(err)
		}
		text, err := journal.PublicKeyText(public)
		if err != nil {
			t.Fatal(err)
		}
		texts[i] = string(text)
	}
	for text, want := range map[string][]string{
		"steward: sam\n" + texts[0] + "\n steward:  eve@x.test \r\n" + texts[1]: {"eve@x.test", "sam"},
		"# of sam\nsteward: sam\n" + texts[0] + texts[1]:                        {"sam"},
		"steward: sam\n" + texts[0] + "steward: sam\n" + texts[1]:               {"sam"},
		texts[0] + texts[1]: nil,
	} {
		if keys, err := journal.ParseStewardKeys([]byte(text)); err != nil || !slices.Equal(keys.Stewards(), want) || len(keys) != 2 {
			t.Errorf("%q: %v, %v", text, keys, err)
		}
	}
	for name, text := range map[string]string{
		"one key of two":        "steward: sam\n" + texts[0] + "steward: eve\n" + texts[0],
		"two names of one":      "steward: sam\nsteward: eve\n" + texts[0],
		"no name":               "steward:\n" + texts[0],
		"a name without a key":  texts[0] + "steward: eve\n",
		"a text that is no key": "steward: sam\n-----BEGIN PUBLIC KEY-----\n%\n-----END PUBLIC KEY-----\n" + texts[0],
	} {
		if keys, err := journal.ParseStewardKeys([]byte(text)); err == nil {
			t.Errorf("%s: %v", name, keys)
		}
	}
}
