package pate

import (
	"errors"
	"math/big"

	"noisegate.example/internal/fault"
	"noisegate.example/mechanisms"
)

// Status says what became of a query. It is released, like the label.
type Status string

// The states of a query.
const (
	Answered   Status = "answered"   // by the teachers
	Rejected   Status = "rejected"   // the check failed: no label
	Reinforced Status = "reinforced" // the check failed and the student was sure: its own label
)

// NoLabel is the label of a rejected query.
const NoLabel = -1

// Outcome is what one query releases.
type Outcome struct {
	Status    Status
	Label     int        // index of a class, or NoLabel
	Histogram []*big.Int // noisy counts of an answered query, if the mode returns them; their argmax is Label
}

var (
	errClasses = errors.New("pate: votes of another number of classes")
	errStudent = errors.New("pate: a student where none belongs, or none where one does")
)

// Label labels one query and says what it cost; draws are exact and fresh. It returns an error only for a defect of the caller: votes
// of another ensemble, or a student that is missing or superfluous.
//
// It panics with [*mechanisms.RandomnessError] when randomness fails.
func (m *Mode) Label(s *mechanisms.Sampler, votes mechanisms.ExactVector, student Student) (Outcome, mechanisms.Loss, error) {
	switch {
	case votes.Len() != m.ensemble.ClassCount():
		return Outcome{}, mechanisms.Loss{}, fault.Internal(errClasses)
	case m.NeedsStudent() != (len(student.offsets) == m.ensemble.ClassCount()):
		return Outcome{}, mechanisms.Loss{}, fault.Internal(errStudent)
	}
	if m.check != nil && !mechanisms.MaxAtLeast(s, m.check, votes, student.offsets, m.threshold) {
		return m.unanswered(student), m.checking, nil
	}
	return m.answer(s, votes), m.checking.Plus(m.answering), nil
}

// unanswered is the outcome of a failed check.
func (m *Mode) unanswered(student Student) Outcome {
	if m.NeedsStudent() && student.probabilities[student.best].Cmp(m.certainty) > 0 {
		return Outcome{Status: Reinforced, Label: student.best}
	}
	return Outcome{Status: Rejected, Label: NoLabel}
}

// answer asks the teachers.
func (m *Mode) answer(s *mechanisms.Sampler, votes mechanisms.ExactVector) Outcome {
	switch {
	case m.softmax != nil:
		return Outcome{Status: Answered, Label: m.softmax.Select(s, votes)}
	case m.returns == ReturnHistogram:
		noisy := mechanisms.ReleaseVector(s, m.noise, votes)
		return Outcome{Status: Answered, Label: argmax(noisy), Histogram: noisy}
	default:
		return Outcome{Status: Answered, Label: mechanisms.ArgmaxVector(s, m.noise, votes)}
	}
}

// argmax is the index of the largest number; of equal ones, the first.
func argmax(noisy []*big.Int) int {
	best := 0
	for i, n := range noisy {
		if n.Cmp(noisy[best]) > 0 {
			best = i
		}
	}
	return best
}
