package held

import (
	"fmt"
	"math/rand/v2"
	"sync"
	"testing"
)

// TestGreedyAnalystsLeaveAShare: k analysts who take all that they get leave a (k+1)th of the budget, and the next one gets half of that at
// once; and everybody has a small answer of the reserve.
func TestGreedyAnalystsLeaveAShare(t *testing.T) {
	const budget, step = 120 << 20, 1 << 10
	for k := 1; k <= 12; k++ {
		b := New(budget)
		shares := make([]*Share, k)
		sizes := make([]int64, k)
		for i := range shares {
			shares[i] = b.Open(fmt.Sprint(i))
		}
		for grown := true; grown; {
			grown = false
			for i, s := range shares {
				if b.all+step <= budget && s.of.holders[s.subject].own+step <= b.bytes-b.all && s.Fit(sizes[i]+step) {
					sizes[i], grown = sizes[i]+step, true
				}
			}
		}
		if left := budget - b.all; left < budget/int64(k+1)-int64(k)*step {
			t.Errorf("%d greedy analysts leave %d bytes, want %d", k, left, budget/(k+1))
		}
		if late := b.Open("late"); !late.Fit((budget-b.all)/2) || !late.Fit((budget-b.all)/2+Always) {
			t.Errorf("beside %d greedy analysts another one gets nothing", k)
		}
	}
}

// TestReserve: where the budget is gone, by answers that were paid for, each analyst has 1 MiB of the reserve, until that is gone too.
func TestReserve(t *testing.T) {
	const budget = 16 << 20
	b := New(budget)
	b.Open("greedy").Resize(3 * budget)
	for i := range 4 {
		s := b.Open(fmt.Sprint(i))
		if !s.Fit(Always) || s.Fit(Always+1) || b.Open(fmt.Sprint(i)).Fit(1) {
			t.Errorf("analyst %d does not have 1 MiB of the reserve", i)
		}
	}
	if b.Open("late").Fit(1) {
		t.Error("the reserve has no end")
	}
}

// TestAccounting: random sequences of takers keep the books: sums are those of the shares, what the rule grants never exceeds the budget,
// and in the end nothing is left.
func TestAccounting(t *testing.T) {
	for seed := range uint64(200) {
		r := rand.New(rand.NewPCG(34, seed))
		budget := int64(1+r.IntN(64)) << 20
		b := New(budget)
		var shares []*Share
		check := func() {
			var own, spare int64
			of := map[string]holder{}
			for _, s := range shares {
				own, spare = own+s.own, spare+s.spare
				h := of[s.subject]
				of[s.subject] = holder{h.own + s.own, h.spare + s.spare, h.shares + 1}
				if s.own < 0 || s.spare < 0 {
					t.Fatalf("seed %d: a share of %d and %d bytes", seed, s.own, s.spare)
				}
			}
			if own != b.all || spare != b.spare || spare > b.reserve || len(of) != len(b.holders) {
				t.Fatalf("seed %d: %d and %d bytes are shared, %d and %d counted", seed, own, spare, b.all, b.spare)
			}
			for subject, h := range of {
				if *b.holders[subject] != h || h.spare > Always {
					t.Fatalf("seed %d: %s has %+v, counted %+v", seed, subject, h, *b.holders[subject])
				}
			}
		}
		for range 300 {
			switch n := r.IntN(10); {
			case n < 3 || len(shares) == 0:
				shares = append(shares, b.Open(fmt.Sprint(r.IntN(6))))
			case n < 4:
				i := r.IntN(len(shares))
				shares[i].Close()
				shares[i].Close()
				shares = append(shares[:i], shares[i+1:]...)
			case n < 5:
				shares[r.IntN(len(shares))].Resize(r.Int64N(budget / 4))
			default:
				s := shares[r.IntN(len(shares))]
				before, all := s.own+s.spare, b.all
				want := r.Int64N(budget)
				fits := s.Fit(want)
				if got := s.own + s.spare; fits && got != want || !fits && got != before {
					t.Fatalf("seed %d: fits %t, from %d to %d bytes, asked for %d", seed, fits, before, got, want)
				}
				if b.all > all && b.all > budget {
					t.Fatalf("seed %d: the rule granted %d of %d bytes", seed, b.all, budget)
				}
			}
			check()
		}
		for _, s := range shares {
			s.Close()
		}
		if b.Taken() != 0 || len(b.holders) != 0 {
			t.Fatalf("seed %d: %d bytes are left", seed, b.Taken())
		}
	}
}

// TestConcurrentShares is for the race detector: nothing is left when all are closed.
func TestConcurrentShares(t *testing.T) {
	b := New(8 << 20)
	var all sync.WaitGroup
	for i := range 16 {
		all.Go(func() {
			r := rand.New(rand.NewPCG(1, uint64(i)))
			for range 500 {
				s := b.Open(fmt.Sprint(i % 5))
				s.Fit(r.Int64N(4 << 20))
				b.Work(func() { s.Resize(r.Int64N(2 << 20)) })
				s.Close()
			}
		})
	}
	all.Wait()
	if b.Taken() != 0 {
		t.Errorf("%d bytes are left", b.Taken())
	}
}
