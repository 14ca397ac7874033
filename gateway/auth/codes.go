package auth

import (
	"crypto/rand"
	"crypto/sha256"
	"sync"
	"time"

	"noisegate.example/internal/fault"
)

// Codes are one-time codes in place of tokens, which are too long to be typed and too lasting to stand in an address: each is exchanged
// for its token once, until its time is over. It is safe for concurrent use.
type Codes struct {
	now    func() time.Time
	mu     sync.Mutex
	tokens map[[sha256.Size]byte]codedToken
}

// codedToken is what a code stands for. Codes are known by their hash, so that how long a look-up takes says nothing of them.
type codedToken struct {
	token string
	until time.Time
}

// NewCodes gives no codes yet. Its clock is time.Now where now is nil.
func NewCodes(now func() time.Time) *Codes {
	if now == nil {
		now = time.Now
	}
	return &Codes{now: now, tokens: map[[sha256.Size]byte]codedToken{}}
}

// Issue makes a code of 128 random bits for a token.
func (c *Codes) Issue(token string, lifetime time.Duration) string {
	code := rand.Text()
	c.mu.Lock()
	defer c.mu.Unlock()
	c.tokens[sha256.Sum256([]byte(code))] = codedToken{token, c.now().Add(lifetime)}
	return code
}

// Redeem gives the token of a code, which stands for nothing from then on. Its error is auth/invalid.
func (c *Codes) Redeem(code string) (string, error) {
	name := sha256.Sum256([]byte(code))
	c.mu.Lock()
	defer c.mu.Unlock()
	coded, ok := c.tokens[name]
	delete(c.tokens, name)
	if !ok || !c.now().Before(coded.until) {
		return "", fault.AuthCode()
	}
	return coded.token, nil
}
