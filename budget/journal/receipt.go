package journal

import (
	"crypto/cipher"
	"crypto/ed25519"
	"crypto/hmac"
	"crypto/rand"
	"crypto/sha256"
	"crypto/x509"
	"encoding/base64"
	"encoding/hex"
	"encoding/json"
	"encoding/pem"
	"errors"
	"time"

	"noisegate.example/budget"
)

// Receipt proves to the holder of an answer that it was charged. It proves to an auditor that nothing before it in the ledger was changed
// since: the gateway signs which entry of the dataset's chain is the answer's settlement, and with it all that came before. It is checked
// with the gateway's public key alone; that the ledger still has the entry, with an export. A receipt is the same whenever its answer is
// given
// again: it says nothing of what others were charged since, nor, as its head is opaque ([Signer.Opaque]), before.
//
// Receipts from before 2026-11-23 name the head that the chain had when the answer left, as it is, and its number.
type Receipt struct {
	Dataset     string
	Reservation budget.ReservationID // "" for replays of what several charges paid for: labels
	Answer      [32]byte             // SHA-256 of the stored answer, as in the digest of its settlement
	Head        budget.Head          // Hash is opaque where Seq is 0; both are zero where Reservation is ""
	At          time.Time            // of the settlement; where nothing was charged, by the gateway's clock; whole microseconds
	Charged     string               // what was charged, and whom, for [Signer.Charged] alone; "" in receipts from before 2026-11-26
	Commitment  Digest               // binds the price: see [Commitment]; zero in receipts from before 2026-11-29, and of several charges
	Key         string               // which public key checks it: see [KeyID]
	Signature   []byte               // Ed25519
}

// receiptText is a receipt on the wire.
type receiptText struct {
	Dataset     string               `json:"dataset"`
	Reservation budget.ReservationID `json:"id"`
	Answer      string               `json:"answer_sha256"`
	Seq         int64                `json:"seq,omitempty"`
	Head        string               `json:"head,omitempty"`
	At          time.Time            `json:"at"`
	Charged     string               `json:"charged,omitempty"`
	Commitment  string               `json:"commitment,omitempty"`
	Key         string               `json:"key"`
	Signature   string               `json:"signature"`
}

// MarshalJSON implements json.Marshaler.
func (r Receipt) MarshalJSON() ([]byte, error) {
	head := ""
	if r.Head.Hash != [32]byte{} {
		head = hex.EncodeToString(r.Head.Hash[:])
	}
	commitment := ""
	if r.Commitment != (Digest{}) {
		commitment = hex.EncodeToString(r.Commitment[:])
	}
	return json.Marshal(receiptText{
		Dataset: r.Dataset, Reservation: r.Reservation, Answer: hex.EncodeToString(r.Answer[:]), Seq: r.Head.Seq,
		Head: head, At: r.At.UTC(), Charged: r.Charged, Commitment: commitment, Key: r.Key,
		Signature: base64.StdEncoding.EncodeToString(r.Signature),
	})
}

// UnmarshalJSON implements json.Unmarshaler.
func (r *Receipt) UnmarshalJSON(data []byte) error {
	var t receiptText
	if err := json.Unmarshal(data, &t); err != nil {
		return err
	}
	answer, answerErr := hash32(t.Answer)
	var head, commitment [32]byte
	var headErr, commitmentErr error
	if t.Head != "" {
		head, headErr = hash32(t.Head)
	}
	if t.Commitment != "" {
		commitment, commitmentErr = hash32(t.Commitment)
	}
	signature, signatureErr := base64.StdEncoding.DecodeString(t.Signature)
	*r = Receipt{Dataset: t.Dataset, Reservation: t.Reservation, Answer: answer, Head: budget.Head{Dataset: t.Dataset, Seq: t.Seq, Hash: head},
		At: t.At, Charged: t.Charged, Commitment: commitment, Key: t.Key, Signature: signature}
	return errors.Join(answerErr, headErr, commitmentErr, signatureErr)
}

func hash32(text string) (sum [32]byte, err error) {
	if n, err := hex.Decode(sum[:], []byte(text[:min(len(text), 64)])); err != nil || n != 32 || len(text) != 64 {
		return sum, errors.New("budget: a hash is 64 hexadecimal digits")
	}
	return sum, nil
}

// signed gives the bytes to sign: a name for receipts, then the fields as [HashAfter] writes them.
func (r Receipt) signed() []byte {
	w := fields{buffer: []byte("noisegate receipt/1")}
	if r.Head.Seq == 0 {
		w.buffer = []byte("noisegate receipt/2")
	}
	if r.Charged != "" {
		w.buffer = []byte("noisegate receipt/3")
	}
	if r.Commitment != (Digest{}) {
		w.buffer = []byte("noisegate receipt/4")
	}
	w.text(r.Dataset)
	w.text(string(r.Reservation))
	w.text(string(r.Answer[:]))
	if r.Head.Seq != 0 {
		w.number(r.Head.Seq)
	}
	w.text(string(r.Head.Hash[:]))
	w.number(r.At.UnixMicro())
	if r.Charged != "" || r.Commitment != (Digest{}) {
		w.text(r.Charged)
	}
	if r.Commitment != (Digest{}) {
		w.text(string(r.Commitment[:]))
	}
	return w.buffer
}

// ErrReceipt says that a receipt was not signed with the key that it is checked with, or was changed.
var ErrReceipt = errors.New("budget: the receipt's signature does not match")

// Check compares a receipt with the answer that it came with and the gateway's public key.
func (r Receipt) Check(public ed25519.PublicKey, answer []byte) error {
	if err := r.CheckSignature(public); err != nil {
		return err
	}
	if r.Answer != sha256.Sum256(answer) {
		return errors.New("budget: the receipt is another answer's")
	}
	return nil
}

// CheckSignature compares a receipt with the gateway's public key alone.
func (r Receipt) CheckSignature(public ed25519.PublicKey) error {
	if len(public) != ed25519.PublicKeySize || r.Key != KeyID(public) || !ed25519.Verify(public, r.signed(), r.Signature) {
		return ErrReceipt
	}
	return nil
}

// ParsePublicKey reads a public key as PEM text (openssl pkey -pubout).
func ParsePublicKey(text []byte) (ed25519.PublicKey, error) {
	return keyOf[ed25519.PublicKey](text, "public", x509.ParsePKIXPublicKey, "cannot be read")
}

// keyOf reads a key of one kind; failed ends the error where parse fails. Errors are without their cause, which may quote the key.
func keyOf[K any](text []byte, kind string, parse func([]byte) (any, error), failed string) (key K, err error) {
	block, _ := pem.Decode(text)
	if block == nil {
		return key, errors.New("budget: the " + kind + " key is no PEM text")
	}
	parsed, err := parse(block.Bytes)
	if err != nil {
		return key, errors.New("budget: the " + kind + " key " + failed)
	}
	key, ok := parsed.(K)
	if !ok {
		return key, errors.New("budget: the " + kind + " key is not of Ed25519")
	}
	return key, nil
}

// PublicKeyText is a public key as PEM text, as [ParsePublicKey] reads it.
func PublicKeyText(key ed25519.PublicKey) ([]byte, error) {
	der, err := x509.MarshalPKIXPublicKey(key)
	if err != nil {
		return nil, err
	}
	return pem.EncodeToMemory(&pem.Block{Type: "PUBLIC KEY", Bytes: der}), nil
}

// NewKeyText makes a private key, as [NewSigner] reads it.
func NewKeyText() ([]byte, error) {
	_, key, err := ed25519.GenerateKey(rand.Reader)
	if err != nil {
		return nil, err
	}
	der, err := x509.MarshalPKCS8PrivateKey(key)
	if err != nil {
		return nil, err
	}
	return pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: der}), nil
}

// KeyID names a public key: the beginning of its SHA-256, in hexadecimal.
func KeyID(public ed25519.PublicKey) string {
	sum := sha256.Sum256(public)
	return hex.EncodeToString(sum[:8])
}

// Signer signs receipts, with a gateway's key, or refills, with a steward's. It is safe for concurrent use.
type Signer struct {
	key ed25519.PrivateKey
	id  string

	heads, nonces, openings []byte // keys that are derived from key
	charged                 cipher.AEAD
}

// NewSigner takes a private key as [ParsePrivateKey] reads it.
func NewSigner(text []byte) (*Signer, error) {
	key, err := ParsePrivateKey(text)
	if err != nil {
		return nil, err
	}
	s := &Signer{key: key}
	s.id = KeyID(s.Public())
	s.heads, s.nonces = s.derived("noisegate receipt heads/1"), s.derived("noisegate receipt nonces/1")
	s.openings, s.charged = s.derived("noisegate charge openings/1"), s.sealing()
	return s, nil
}

// ParsePrivateKey reads a private key as PEM text of PKCS #8 (openssl genpkey -algorithm ed25519). Its errors do not quote the text.
func ParsePrivateKey(text []byte) (ed25519.PrivateKey, error) {
	return keyOf[ed25519.PrivateKey](text, "private", x509.ParsePKCS8PrivateKey, "is none of PKCS #8")
}

// Public is the key that checks what s signs.
func (s *Signer) Public() ed25519.PublicKey { return s.key.Public().(ed25519.PublicKey) }

// Sign makes the receipt of the answer of a settled charge.
func (s *Signer) Sign(settlement budget.Settlement, id budget.ReservationID, answer []byte) Receipt {
	r := Receipt{Dataset: settlement.Dataset, Reservation: id, Answer: sha256.Sum256(answer), At: settlement.At,
		Head: budget.Head{Dataset: settlement.Dataset, Hash: s.Opaque(settlement.Head)}}
	if settlement.Charged != nil {
		r.Charged = s.seal(*settlement.Charged, r.Head.Hash)
	}
	r.Commitment = s.commitment(settlement, id)
	return s.signed(r)
}

// SignUncharged makes the receipt of what was charged before, by several charges: it names none of them, and no head.
func (s *Signer) SignUncharged(dataset string, answer []byte, at time.Time) Receipt {
	return s.signed(Receipt{Dataset: dataset, Answer: sha256.Sum256(answer), At: at, Head: budget.Head{Dataset: dataset}})
}

func (s *Signer) signed(r Receipt) Receipt {
	r.At, r.Key = r.At.UTC().Truncate(time.Microsecond), s.id
	r.Signature = ed25519.Sign(s.key, r.signed())
	return r
}

// Opaque hides the hash of a head in receipts. It gives HMAC-SHA256 of the head's dataset, number and hash, under a key that is derived
// from the signing key. The hash itself would show more: a caller who knows all entries but a few of their times could check that nobody
// else wrote one in between. Auditors see the opaque head with each settlement.
func (s *Signer) Opaque(head budget.Head) (sum [32]byte) {
	mac := hmac.New(sha256.New, s.heads)
	w := fields{}
	w.text(head.Dataset)
	w.number(head.Seq)
	w.text(string(head.Hash[:]))
	mac.Write(w.buffer)
	mac.Sum(sum[:0])
	return sum
}
