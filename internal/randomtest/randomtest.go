// Package randomtest gives tests randomness that is the same in each run. It does not know what is drawn from it.
package randomtest

import (
	"crypto/aes"
	"crypto/cipher"
	"crypto/rand"
	"crypto/sha256"
	"io"
	"os"
	"strings"
)

// fresh makes [Source] draw anew in each run.
const fresh = "NOISEGATE_FRESH"

// whole has tests take all their cases ([Part]).
const whole = "NOISEGATE_WHOLE"

// Source is randomness in place of the operating system's: the same bytes in each run for the same names, so that a
// verdict about noise is the same in each run too. The first name is that of the test; a test that needs independent
// sources names them. With the environment variable NOISEGATE_FRESH=1 it draws anew (make audit); the false-alarm rates
// that tests state are for that.
func Source(names ...string) io.Reader {
	if Fresh() {
		return rand.Reader
	}
	seed := sha256.Sum256([]byte(strings.Join(names, "\x00")))
	block, err := aes.NewCipher(seed[:])
	if err != nil {
		panic(err) // 32 bytes are a key
	}
	return cipher.StreamReader{S: cipher.NewCTR(block, make([]byte, aes.BlockSize)), R: zeros{}}
}

// Fresh says whether randomness is drawn anew. What a test says of the draws themselves, such as that they tell two laws apart,
// holds where they are the same in each run only.
func Fresh() bool { return os.Getenv(fresh) == "1" }

// Times is the number of draws of a test: few in each run, many where randomness is drawn anew (make audit).
func Times(few, many int) int {
	if Fresh() {
		return many
	}
	return few
}

// Part is the number of cases that a test tries: few in make test, all in make whole, which sets NOISEGATE_WHOLE=1. The cases are then the
// first of the same.
func Part(few, all int) int {
	if os.Getenv(whole) == "1" {
		return all
	}
	return few
}

// zeros are the plain text: what a stream cipher makes of it is its key stream.
type zeros struct{}

func (zeros) Read(p []byte) (int, error) {
	clear(p)
	return len(p), nil
}
