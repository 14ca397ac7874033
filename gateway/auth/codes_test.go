package auth_test

import (
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"noisegate.example/gateway/auth"
	"noisegate.example/internal/fault"
)

// A code is exchanged once, within its time, and for its own token.
func TestCodes(t *testing.T) {
	now := time.Unix(1_000_000, 0)
	codes := auth.NewCodes(func() time.Time { return now })
	one, two := codes.Issue("token one", time.Minute), codes.Issue("token two", 2*time.Minute)
	if one == two || len(one) < 26 {
		t.Fatalf("codes %q and %q", one, two)
	}
	invalid := func(code string) {
		t.Helper()
		if token, err := codes.Redeem(code); token != "" || fault.CodeOf(err) != fault.CodeAuthInvalid {
			t.Errorf("%q gives %q, %v", code, token, err)
		}
	}
	invalid("")
	invalid(one[1:])
	if token, err := codes.Redeem(one); token != "token one" || err != nil {
		t.Errorf("got %q, %v", token, err)
	}
	invalid(one)
	now = now.Add(2 * time.Minute)
	invalid(two)
	now = now.Add(-time.Minute)
	invalid(two) // what was tried too late is gone
}

// Of many who try one code at a time, one gets the token.
func TestCodesRace(t *testing.T) {
	codes := auth.NewCodes(nil)
	code := codes.Issue("token", time.Hour)
	var got atomic.Int32
	var all sync.WaitGroup
	for range 16 {
		all.Go(func() {
			if token, err := codes.Redeem(code); err == nil && token == "token" {
				got.Add(1)
			}
		})
	}
	all.Wait()
	if got.Load() != 1 {
		t.Errorf("%d got the token", got.Load())
	}
}
