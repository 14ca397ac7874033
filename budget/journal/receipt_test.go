package journal_test

import (
	"bytes"
	"crypto/ed25519"
	"crypto/rand"
	"crypto/rsa"
	"crypto/sha256"
	"crypto/x509"
	"encoding/binary"
	"encoding/json"
	"encoding/pem"
	"testing"
	"time"

	"noisegate.example/budget"
	"noisegate.example/budget/journal"
	"noisegate.example/mechanisms"
)

func keyText(t *testing.T, key any) []byte {
	t.Helper()
	der, err := x509.MarshalPKCS8PrivateKey(key)
	if err != nil {
		t.Fatal(err)
	}
	return pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: der})
}

// newSigner is a signer and its key.
func newSigner(t *testing.T) (*journal.Signer, ed25519.PrivateKey) {
	t.Helper()
	_, key, err := ed25519.GenerateKey(rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	signer, err := journal.NewSigner(keyText(t, key))
	if err != nil {
		t.Fatal(err)
	}
	return signer, key
}

// A receipt passes through JSON and is checked with the public key alone; whatever is changed of it is noticed.
func TestReceipt(t *testing.T) {
	signer, _ := newSigner(t)
	answer := []byte(`{"rows": [[3]]}`)
	settlement := budget.Settlement{Head: budget.Head{Dataset: "census", Seq: 7, Hash: [32]byte{1, 2, 3}},
		At: time.Date(2026, 11, 21, 15, 0, 0, 123_456_789, time.UTC)}
	given := signer.Sign(settlement, "01J", answer)
	text, err := json.Marshal(given)
	if err != nil {
		t.Fatal(err)
	}
	read := func(text string) journal.Receipt {
		t.Helper()
		var r journal.Receipt
		if err := json.Unmarshal([]byte(text), &r); err != nil {
			t.Fatal(err)
		}
		return r
	}
	if err := read(string(text)).Check(signer.Public(), answer); err != nil {
		t.Error(err)
	}
	for name, change := range map[string]func(*journal.Receipt){
		"dataset": func(r *journal.Receipt) { r.Dataset = "other" }, "reservation": func(r *journal.Receipt) { r.Reservation = "02J" },
		"answer": func(r *journal.Receipt) { r.Answer[0]++ }, "number": func(r *journal.Receipt) { r.Head.Seq++ },
		"head": func(r *journal.Receipt) { r.Head.Hash[31]++ }, "time": func(r *journal.Receipt) { r.At = r.At.Add(time.Microsecond) },
		"key": func(r *journal.Receipt) { r.Key = "0" }, "signature": func(r *journal.Receipt) { r.Signature[0]++ },
	} {
		r := read(string(text))
		change(&r)
		if r.Check(signer.Public(), answer) == nil {
			t.Errorf("another %s is not noticed", name)
		}
	}
	if read(string(text)).Check(signer.Public(), []byte("x")) == nil {
		t.Error("another answer is not noticed")
	}
	other, _, err := ed25519.GenerateKey(rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	for _, public := range []ed25519.PublicKey{other, nil} {
		if read(string(text)).Check(public, answer) == nil {
			t.Error("another key checks it")
		}
	}
	for _, damaged := range []string{`{`, `{"head": "00"}`, `{"head": "zz"}`, `{"signature": "!"}`} {
		if err := json.Unmarshal([]byte(damaged), &journal.Receipt{}); err == nil {
			t.Errorf("%s is read", damaged)
		}
	}
}

// Receipts show no number and no hash of the ledger, only what the gateway's key makes of them; those from before
// showed both, and are still checked.
//
// covers: L8
func TestReceiptHeadsAreOpaque(t *testing.T) {
	signer, key := newSigner(t)
	settlement := budget.Settlement{Head: budget.Head{Dataset: "census", Seq: 70_007, Hash: [32]byte{0xab, 0xcd, 0xef}},
		At: time.Date(2026, 11, 21, 15, 0, 0, 0, time.UTC)}
	first, err := json.Marshal(signer.Sign(settlement, "01J", []byte("x")))
	if err != nil {
		t.Fatal(err)
	}
	second, err := json.Marshal(signer.Sign(settlement, "01J", []byte("x")))
	if err != nil || !bytes.Equal(first, second) {
		t.Errorf("%s\n%s", first, second)
	}
	if bytes.Contains(first, []byte("70007")) || bytes.Contains(first, []byte("abcdef")) || bytes.Contains(first, []byte(`"seq"`)) {
		t.Errorf("%s", first)
	}
	for _, other := range []budget.Head{{Dataset: "census", Seq: 70_008, Hash: settlement.Hash}, {Dataset: "census", Seq: 70_007},
		{Dataset: "other", Seq: 70_007, Hash: settlement.Hash}} {
		if signer.Opaque(other) == signer.Opaque(settlement.Head) {
			t.Errorf("%+v looks the same", other)
		}
	}

	old := journal.Receipt{Dataset: "census", Reservation: "01J", Answer: sha256.Sum256([]byte("x")), Head: settlement.Head,
		At: settlement.At, Key: journal.KeyID(signer.Public())}
	text := []byte("noisegate receipt/1")
	number := func(n int64) { text = binary.BigEndian.AppendUint64(text, uint64(n)) }
	put := func(s string) { number(int64(len(s))); text = append(text, s...) }
	put(old.Dataset)
	put(string(old.Reservation))
	put(string(old.Answer[:]))
	number(old.Head.Seq)
	put(string(old.Head.Hash[:]))
	number(old.At.UnixMicro())
	old.Signature = ed25519.Sign(key, text)
	if err := old.Check(signer.Public(), []byte("x")); err != nil {
		t.Error(err)
	}
	free := signer.SignUncharged("census", []byte("x"), settlement.At)
	if text, err := json.Marshal(free); err != nil || bytes.Contains(text, []byte(`"head"`)) ||
		free.Check(signer.Public(), []byte("x")) != nil {
		t.Errorf("%s, %v", text, err)
	}
}

// A receipt that was signed before receipts named plans is read, and is still what is signed where no plan paid; one of a draw says
// what the plan cost.
func TestChargedOfReceipts(t *testing.T) {
	signer, err := journal.NewSigner(keyText(t, ed25519.NewKeyFromSeed(make([]byte, 32))))
	if err != nil {
		t.Fatal(err)
	}
	own := []budget.AccountID{{Dataset: "census", Scope: budget.AnalystScope, Name: "ana"}}
	settlement := budget.Settlement{Head: budget.Head{Dataset: "census", Seq: 7, Hash: [32]byte{1}},
		At:      time.Date(2026, 11, 26, 12, 0, 0, 0, time.UTC),
		Charged: &budget.Charged{Analyst: "ana", Accounts: own, Loss: mechanisms.Loss{Epsilon: 5, Tail: 1}}}
	const before = `{"dataset":"census","id":"01J","answer_sha256":"2d711642b726b04401627ca9fbac32f5c8530fb1903cc4db02258717921a4881",` +
		`"head":"d7d89579a463bddd8168fd5aa0ba867097b3b1df4002e944b18a9ed26b69fc83","at":"2026-11-26T12:00:00Z",` +
		`"charged":"judSgX59XogItnI5fYeDqsXjNyZoDvd5oWJOyPibLB+zTtsCEJCRe16/N5q9/EH/5DPQFrAQ872Qj5upcgVWZEcxJEhuY41CUDyp2gxM2RjChakOQ` +
		`ngflFFxClYnqJZHztma88Qk42612Opo6QsoMbSezxUw9LoiP1tFeAzNc+htg9C/Z2Yb+vxZJc3eI6wrsZXK+NnuWzFBJa9b0bufJVzPwTRZ8SQIQFQSG+dwbvKxgGxT` +
		`7R4/yH4hCr1ZCZh0li17YuetTLcv9VW1cDVmXaMUaScpS5ttRgkCNiLYt1M1F/4UYAm/xeO4jTO47Zwu0XY4OZWLEH9mptpps92VOBf8E1f+KnxOCM6UbmXs23Y5tyT0` +
		`3SiCR2KcJwM=","key":"139e3940e64b5491",` +
		`"signature":"IlycOKK6En2XHqLUz4Qt/1r/L+NdAQ7NF/qZ486vmbp/zGW8zCu7utsB7EiGBAdkXnD1MhIk3LhaBlr3cGw+Cg=="}`
	var old journal.Receipt
	if err := json.Unmarshal([]byte(before), &old); err != nil {
		t.Fatal(err)
	}
	now := signer.Sign(settlement, "01J", []byte("x"))
	if now.Charged != old.Charged || now.Head != old.Head || now.Commitment == (journal.Digest{}) ||
		now.Check(signer.Public(), []byte("x")) != nil {
		t.Errorf("signed now: %+v", now)
	}
	if now.Commitment = (journal.Digest{}); now.CheckSignature(signer.Public()) == nil {
		t.Error("the signature does not cover the commitment")
	}
	r, err := signer.Recharge(old)
	if err != nil || r.Plan != nil || r.Loss != settlement.Charged.Loss || len(r.Charges()) != 1 || r.Check() != nil {
		t.Errorf("%+v, %v", r, err)
	}
	plan := budget.PaidPlan{ID: "00J", From: 2, Count: 1, Accounts: own, Loss: mechanisms.Loss{Epsilon: 100, Rho: 3, Delta: 9}}
	settlement.Charged.Loss, settlement.Charged.Plan = mechanisms.Loss{}, &plan
	if r, err = signer.Recharge(signer.Sign(settlement, "01J", []byte("x"))); err != nil || r.Check() != nil {
		t.Fatal(r, err)
	}
	all := r.Charges()
	if len(all) != 2 || all[0].ID != "00J" || all[0].Loss != plan.Loss || all[0].Plan != nil || all[1].ID != "01J" || *all[1].Plan.Draw() !=
		(budget.Draw{Plan: "00J", From: 2, Count: 1}) {
		t.Errorf("%+v", all)
	}
}

func TestSignerRefusesOtherKeys(t *testing.T) {
	key, err := rsa.GenerateKey(rand.Reader, 2048)
	if err != nil {
		t.Fatal(err)
	}
	for name, text := range map[string][]byte{"no PEM": []byte("key"),
		"no key": []byte("-----BEGIN PRIVATE KEY-----\nAAAA\n-----END PRIVATE KEY-----\n"), "RSA": keyText(t, key)} {
		if _, err := journal.NewSigner(text); err == nil {
			t.Errorf("%s is taken", name)
		}
	}
}
