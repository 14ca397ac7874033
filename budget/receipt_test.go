package budget_test

import (
	"crypto/ed25519"
	"crypto/rand"
	"crypto/rsa"
	"crypto/x509"
	"encoding/json"
	"encoding/pem"
	"testing"
	"time"

	"noisegate/budget"
)

func keyText(t *testing.T, key any) []byte {
	t.Helper()
	der, err := x509.MarshalPKCS8PrivateKey(key)
	if err != nil {
		t.Fatal(err)
	}
	return pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: der})
}

// A receipt passes through JSON and is checked with the public key alone; whatever is changed of it is noticed.
func TestReceipt(t *testing.T) {
	_, key, err := ed25519.GenerateKey(rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	signer, err := budget.NewSigner(keyText(t, key))
	if err != nil {
		t.Fatal(err)
	}
	answer := []byte(`{"rows": [[3]]}`)
	given := signer.Sign(budget.Head{Dataset: "census", Seq: 7, Hash: [32]byte{1, 2, 3}}, "01J", answer, time.Date(2026, 11, 21, 15, 0, 0, 123_456_789, time.UTC))
	text, err := json.Marshal(given)
	if err != nil {
		t.Fatal(err)
	}
	read := func(text string) budget.Receipt {
		t.Helper()
		var r budget.Receipt
		if err := json.Unmarshal([]byte(text), &r); err != nil {
			t.Fatal(err)
		}
		return r
	}
	if err := read(string(text)).Check(signer.Public(), answer); err != nil {
		t.Error(err)
	}
	for name, change := range map[string]func(*budget.Receipt){
		"dataset": func(r *budget.Receipt) { r.Dataset = "other" }, "reservation": func(r *budget.Receipt) { r.Reservation = "02J" },
		"answer": func(r *budget.Receipt) { r.Answer[0]++ }, "number": func(r *budget.Receipt) { r.Head.Seq++ },
		"head": func(r *budget.Receipt) { r.Head.Hash[31]++ }, "time": func(r *budget.Receipt) { r.At = r.At.Add(time.Microsecond) },
		"key": func(r *budget.Receipt) { r.Key = "0" }, "signature": func(r *budget.Receipt) { r.Signature[0]++ },
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
		if err := json.Unmarshal([]byte(damaged), &budget.Receipt{}); err == nil {
			t.Errorf("%s is read", damaged)
		}
	}
}

func TestSignerRefusesOtherKeys(t *testing.T) {
	key, err := rsa.GenerateKey(rand.Reader, 2048)
	if err != nil {
		t.Fatal(err)
	}
	for name, text := range map[string][]byte{"no PEM": []byte("key"), "no key": []byte("-----BEGIN PRIVATE KEY-----\nAAAA\n-----END PRIVATE KEY-----\n"), "RSA": keyText(t, key)} {
		if _, err := budget.NewSigner(text); err == nil {
			t.Errorf("%s is taken", name)
		}
	}
}
