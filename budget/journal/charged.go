package journal

import (
	"bytes"
	"crypto/aes"
	"crypto/cipher"
	"crypto/hmac"
	"crypto/sha256"
	"encoding/base64"
	"encoding/json"
	"errors"

	"noisegate.example/budget"
)

// A receipt has what was charged, so that a charge that the ledger lost can be booked again. It is sealed: an answer may
// be given to others than who bought it, and says neither who that was nor what shared accounts paid. A receipt is the
// same whenever it is made, and so is the sealed text: its nonce is an HMAC of what is in it.

// chargedBlock is what the length of a sealed text is a multiple of, before it is encoded.
const chargedBlock = 256

// ErrCharged says that what was charged cannot be read of a receipt: it has nothing of it, or another key signed it.
var ErrCharged = errors.New("budget: the receipt does not say what was charged, or another key signed it")

func (s *Signer) derived(what string) []byte {
	mac := hmac.New(sha256.New, s.key.Seed())
	mac.Write([]byte(what))
	return mac.Sum(nil)
}

func (s *Signer) sealing() cipher.AEAD {
	block, err := aes.NewCipher(s.derived("noisegate receipt charged/1"))
	if err != nil { // the key has the right length
		panic(err)
	}
	sealing, err := cipher.NewGCM(block)
	if err != nil {
		panic(err)
	}
	return sealing
}

func (s *Signer) seal(c budget.Charged, head [32]byte) string {
	text, err := json.Marshal(c)
	if err != nil { // texts and numbers always encode
		panic(err)
	}
	text = append(text, bytes.Repeat([]byte(" "), (chargedBlock-len(text)%chargedBlock)%chargedBlock)...)
	mac := hmac.New(sha256.New, s.nonces)
	mac.Write(head[:])
	mac.Write(text)
	nonce := mac.Sum(nil)[:s.charged.NonceSize()]
	return base64.StdEncoding.EncodeToString(s.charged.Seal(nonce, nonce, text, head[:]))
}

// Charged is what a receipt says of its charge, if s signed it.
func (s *Signer) Charged(r Receipt) (c budget.Charged, err error) {
	sealed, err := base64.StdEncoding.DecodeString(r.Charged)
	sealing := s.charged
	if err != nil || len(sealed) < sealing.NonceSize() || r.CheckSignature(s.Public()) != nil {
		return c, ErrCharged
	}
	text, err := sealing.Open(nil, sealed[:sealing.NonceSize()], sealed[sealing.NonceSize():], r.Head.Hash[:])
	if err != nil || json.Unmarshal(text, &c) != nil {
		return budget.Charged{}, ErrCharged
	}
	return c, nil
}

// Recharge is what books the charge of a receipt again, if s signed it.
func (s *Signer) Recharge(r Receipt) (budget.Recharge, error) {
	c, err := s.Charged(r)
	if err != nil {
		return budget.Recharge{}, err
	}
	text, err := json.Marshal(r)
	if err != nil {
		return budget.Recharge{}, err
	}
	return budget.Recharge{Charged: c, ID: r.Reservation, Dataset: r.Dataset, Answer: r.Answer, Receipt: text}, nil
}
