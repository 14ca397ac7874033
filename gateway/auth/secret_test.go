package auth

import (
	"encoding/base64"
	"math/rand/v2"
	"testing"
)

// TestRandomKeysAreTaken has base64 of random keys; one in 1,500 has no digit.
func TestRandomKeysAreTaken(t *testing.T) {
	random := rand.NewChaCha8([32]byte{1})
	key := make([]byte, minHMACKey)
	for range 100_000 {
		_, _ = random.Read(key) // never fails
		text := base64.StdEncoding.EncodeToString(key)
		if err := checkSecret([]byte(text)); err != nil {
			t.Fatalf("%s: %v", text, err)
		}
	}
}
