package pate

import (
	"crypto/sha256"
	"encoding/hex"
	"math/big"

	"noisegate.example/internal/fault"
)

// Student is what a student model says about one query: a probability for each class. It is public, since students are trained on private
// labels only.
type Student struct {
	probabilities []*big.Rat
	offsets       []int64 // floor(1/2 - M·p): what rounding n - M·p to the nearest integer, halves up, adds to an integer n
	best          int
}

// NewStudent checks a student's probabilities, exact rationals in the order of the ensemble's classes. It returns a [fault.Error].
func NewStudent(e Ensemble, probabilities []*big.Rat) (Student, error) {
	if len(probabilities) != e.ClassCount() {
		return Student{}, fault.PateStudent("a student needs one probability for each class")
	}
	s := Student{probabilities: make([]*big.Rat, len(probabilities)), offsets: make([]int64, len(probabilities))}
	total, half, one := new(big.Rat), big.NewRat(1, 2), big.NewRat(1, 1)
	for i, p := range probabilities {
		if p == nil || p.Sign() < 0 || p.Cmp(one) > 0 {
			return Student{}, fault.PateStudent("a student's probabilities are from 0 to 1")
		}
		s.probabilities[i] = new(big.Rat).Set(p)
		total.Add(total, p)
		if p.Cmp(s.probabilities[s.best]) > 0 {
			s.best = i
		}
		shift := new(big.Rat).Mul(p, new(big.Rat).SetInt64(e.teachers))
		shift.Sub(half, shift)
		s.offsets[i] = new(big.Int).Div(shift.Num(), shift.Denom()).Int64() // Div rounds down for positive divisors
	}
	if total.Sub(total, one); total.Abs(total).Cmp(big.NewRat(1, 1_000_000)) > 0 {
		return Student{}, fault.PateStudent("a student's probabilities add up to 1, within a millionth")
	}
	return s, nil
}

// Key identifies the probabilities, as hexadecimal SHA-256: part of the key under which an answer is stored. It is "" for the zero
// Student, which modes without a student take.
func (s Student) Key() string {
	if s.probabilities == nil {
		return ""
	}
	h := sha256.New()
	for _, p := range s.probabilities {
		h.Write([]byte(p.RatString()))
		h.Write([]byte{0})
	}
	return hex.EncodeToString(h.Sum(nil))
}
