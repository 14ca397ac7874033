package collect

import (
	"crypto/ed25519"
	"crypto/sha256"
	"encoding/base64"
)

const (
	maxDevice   = 128 // bytes of the name of a device
	tokenLength = 88  // of a signature in base64, whose decoder passes over line breaks
)

// Enrolment is a steward's word that a device is one device. Without it one sender could be many.
type Enrolment struct {
	Collection string
	Device     string // 1 to 128 bytes, without control characters
}

// Text is what a steward signs. Neither name can hold a line break, so that no two enrolments have one text.
func (e Enrolment) Text() []byte {
	return []byte("noisegate enrolment/1\ncollection " + e.Collection + "\ndevice " + e.Device + "\n")
}

// Valid reports whether both names can be those of a collection and a device.
func (e Enrolment) Valid() bool {
	return collectionName.MatchString(e.Collection) && validText(e.Device, maxDevice)
}

// Token is the enrolment's signature in base64: what a device shows.
func (e Enrolment) Token(key ed25519.PrivateKey) string {
	return base64.StdEncoding.EncodeToString(ed25519.Sign(key, e.Text()))
}

// signedBy reports whether a token is the signature of the key over the enrolment.
func (e Enrolment) signedBy(key ed25519.PublicKey, token string) bool {
	signature, err := base64.StdEncoding.Strict().DecodeString(token)
	return err == nil && len(token) == tokenLength && e.Valid() && ed25519.Verify(key, e.Text(), signature)
}

// digest stands for the device where reports are kept.
func (e Enrolment) digest() [32]byte { return sha256.Sum256(e.Text()) }
