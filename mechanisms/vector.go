package mechanisms

import (
	"cmp"
	"fmt"
	"log/slog"
	"math/big"
)

// ExactVector is a list of true values that are released together, sealed as one [Exact] is: it cannot be printed, logged, compared or
// encoded, and only this package opens it, to add noise or to select. It keeps machine integers, because vote tables are large.
//
// The zero ExactVector is empty.
type ExactVector struct {
	v *exactVector
}

// exactVector keeps the values behind a pointer to an unexported type, as exactValue does.
type exactVector struct{ n []int64 }

// SealVector takes over true values. The caller must drop its own copy of the slice.
func SealVector(values []int64) ExactVector { return ExactVector{v: &exactVector{n: values}} }

// Len is how many values there are, which is public.
func (e ExactVector) Len() int { return len(e.open()) }

// open gives the values to the mechanisms of this package.
func (e ExactVector) open() []int64 {
	if e.v == nil {
		return nil
	}
	return e.v.n
}

// Format implements [fmt.Formatter] for every verb, %#v and %p included.
func (ExactVector) Format(f fmt.State, _ rune) { _, _ = f.Write([]byte(sealed)) }

// String implements [fmt.Stringer].
func (ExactVector) String() string { return sealed }

// GoString implements [fmt.GoStringer].
func (ExactVector) GoString() string { return sealed }

// LogValue implements [slog.LogValuer].
func (ExactVector) LogValue() slog.Value { return slog.StringValue(sealed) }

// MarshalJSON refuses: true values never leave the process.
func (ExactVector) MarshalJSON() ([]byte, error) { return nil, errSealed }

// MarshalText refuses: true values never leave the process.
func (ExactVector) MarshalText() ([]byte, error) { return nil, errSealed }

// MarshalBinary refuses (gob and friends): true values never leave the process.
func (ExactVector) MarshalBinary() ([]byte, error) { return nil, errSealed }

// ReleaseVector adds fresh noise to every value: the loss is the mechanism's, for its sensitivity as a vector.
func ReleaseVector(s *Sampler, noise Additive, values ExactVector) []*big.Int {
	noisy := make([]*big.Int, values.Len())
	for i, n := range values.open() {
		noisy[i] = noise.Draw(s).plus(n).bigInt()
	}
	return noisy
}

// ArgmaxVector is the index of the largest value after fresh noise was added to every one of them; of equal ones, the first. It is -1
// for an empty vector. The loss is that of [ReleaseVector], whose post-processing it is; nothing but the index exists afterwards.
func ArgmaxVector(s *Sampler, noise Additive, values ExactVector) int {
	best, winner := sum{}, -1
	for i, n := range values.open() {
		if noisy := noise.Draw(s).plus(n); winner < 0 || noisy.cmp(best) > 0 {
			best, winner = noisy, i
		}
	}
	return winner
}

// MaxAtLeast reports whether the largest of the sums values[i]+offsets[i], with one fresh noise added, reaches the threshold. No
// offsets stand for zeros; otherwise there is one for each value. It is false for an empty vector.
//
// One unit moves the largest sum by no more than it moves any one value: that is the sensitivity to make the noise for.
func MaxAtLeast(s *Sampler, noise Additive, values ExactVector, offsets []int64, threshold *big.Int) bool {
	drawn := noise.Draw(s) // always, so that the randomness used does not depend on the data
	best, found := sum{}, false
	for i, n := range values.open() {
		shifted := sum{small: n}
		if offsets != nil {
			shifted = add(n, offsets[i]) //nolint:gosec // one offset for each value: the caller's duty
		}
		if !found || shifted.cmp(best) > 0 {
			best, found = shifted, true
		}
	}
	return found && drawn.Release(Seal(best.bigInt())).Cmp(threshold) >= 0
}

// sum is an integer that nearly always fits a machine word.
type sum struct {
	small int64
	big   *big.Int // nil when small holds the number
}

// plus is the noise added to a machine integer.
func (n Noise) plus(value int64) sum {
	switch {
	case !n.drawn:
		panic("mechanisms: noise that was never drawn cannot release a value")
	case n.big != nil:
		return sum{big: new(big.Int).Add(n.big, big.NewInt(value))}
	default:
		return add(n.small, value)
	}
}

func add(a, b int64) sum {
	if c := a + b; (c > b) == (a > 0) {
		return sum{small: c}
	}
	return sum{big: new(big.Int).Add(big.NewInt(a), big.NewInt(b))}
}

func (x sum) bigInt() *big.Int {
	if x.big != nil {
		return x.big
	}
	return big.NewInt(x.small)
}

func (x sum) cmp(y sum) int {
	if x.big != nil || y.big != nil {
		return x.bigInt().Cmp(y.bigInt())
	}
	return cmp.Compare(x.small, y.small)
}
