package pate

import (
	"fmt"
	"slices"

	"noisegate.example/internal/fault"
	"noisegate.example/mechanisms"
)

// Limits of an ensemble: a count fits 16 bits in storage, and is exact in any number type.
const (
	MaxClasses  = 10_000
	MaxTeachers = 65_535
)

// EnsembleParameters describe an ensemble of teachers. They are public.
type EnsembleParameters struct {
	Classes              []string // what teachers choose from; different names, from the schema, never from observed votes
	Teachers             int64    // each of whom casts one vote per query; one that may abstain does so by a class of that name
	MaxTeachersPerPerson int64    // how many teachers' partitions may hold data of one person; 0 stands for 1
}

// Ensemble is a checked description of teachers and classes, and of what one person may change. It is public.
type Ensemble struct {
	classes   []string
	teachers  int64
	perPerson int64
}

// NewEnsemble checks a description. It returns a [fault.Error].
func NewEnsemble(p EnsembleParameters) (Ensemble, error) {
	if p.MaxTeachersPerPerson == 0 {
		p.MaxTeachersPerPerson = 1
	}
	switch {
	case len(p.Classes) < 1 || len(p.Classes) > MaxClasses:
		return Ensemble{}, fault.PateEnsemble("classes", fmt.Sprintf("from 1 to %d names", MaxClasses))
	case p.Teachers < 1 || p.Teachers > MaxTeachers:
		return Ensemble{}, fault.PateEnsemble("teachers", fmt.Sprintf("a number from 1 to %d", MaxTeachers))
	case p.MaxTeachersPerPerson < 1 || p.MaxTeachersPerPerson > p.Teachers:
		return Ensemble{}, fault.PateEnsemble("max_teachers_per_person", "at least 1 and at most the number of teachers")
	}
	seen := make(map[string]bool, len(p.Classes))
	for _, name := range p.Classes {
		if !validKey(name) || seen[name] {
			return Ensemble{}, fault.PateEnsemble("classes", fmt.Sprintf("distinct names of 1 to %d bytes of UTF-8 without control characters",
				maxKey))
		}
		seen[name] = true
	}
	return Ensemble{classes: slices.Clone(p.Classes), teachers: p.Teachers, perPerson: p.MaxTeachersPerPerson}, nil
}

// Classes are the names of the classes, in the order in which equal votes are decided.
func (e Ensemble) Classes() []string { return slices.Clone(e.classes) }

// ClassCount is how many classes there are.
func (e Ensemble) ClassCount() int { return len(e.classes) }

// Teachers is how many votes each query has.
func (e Ensemble) Teachers() int64 { return e.teachers }

// MaxTeachersPerPerson is k, how many votes of a query one person may move.
func (e Ensemble) MaxTeachersPerPerson() int64 { return e.perPerson }

// Seal checks the counts of one query, as storage has them, and seals them. The error, a [fault.Error], says nothing about the counts.
func (e Ensemble) Seal(counts []uint32) (mechanisms.ExactVector, error) {
	if err := e.check(0, counts); err != nil {
		return mechanisms.ExactVector{}, err
	}
	return vector(counts), nil
}

// check holds the counts of one query against the ensemble; row, from 1, is what the error names.
func (e Ensemble) check(row int64, counts []uint32) error {
	if len(counts) != len(e.classes) {
		return fault.PateVotes(row, "there must be one count for each class")
	}
	total := int64(0)
	for _, n := range counts {
		total += int64(n)
	}
	if total != e.teachers {
		return fault.PateVotes(row, "the votes do not add up to the number of teachers; let one that abstains vote for a class of its own")
	}
	return nil
}

// vector seals counts.
func vector(counts []uint32) mechanisms.ExactVector {
	values := make([]int64, len(counts))
	for i, n := range counts {
		values[i] = int64(n)
	}
	return mechanisms.SealVector(values)
}
