package pate

import (
	"noisegate.example/internal/fault"
	"noisegate.example/mechanisms"
)

// SimulationParameters say how a mode is tried out on votes.
type SimulationParameters struct {
	Rounds   int       // how often the whole table is labelled; 1 to 1000
	Truth    []int     // the true classes, if known: one index for each query
	Students []Student // interactive: one for each query
}

// Simulation is what a mode would do to a table. It looks at votes, and nothing is paid for: it is for the owner of the votes, before any
// label is sold, and as secret as they are.
type Simulation struct {
	Queries   int             `json:"queries"`
	Answered  float64         `json:"answered"`  // share of queries that the teachers answer
	Labelled  float64         `json:"labelled"`  // share of queries that get a label, the student's own included
	Agreement float64         `json:"agreement"` // share of labels that are the plurality's
	Accuracy  float64         `json:"accuracy"`  // share of labels that are true; 0 if the truth is unknown
	Plurality float64         `json:"plurality"` // share of queries whose plurality is true: the accuracy without privacy
	Mean      mechanisms.Loss `json:"-"`         // of a round, rounded up
	Worst     mechanisms.Loss `json:"-"`
}

// Simulate labels the table with fresh noise and counts. It returns a [fault.Error] for parameters out of range.
func (m *Mode) Simulate(s *mechanisms.Sampler, t *Table, p SimulationParameters) (*Simulation, error) {
	queries := t.Queries()
	switch {
	case p.Rounds < 1 || p.Rounds > 1000 || queries == 0:
		return nil, fault.PateParameters("a simulation has 1 to 1000 rounds and at least one query")
	case p.Truth != nil && len(p.Truth) != queries:
		return nil, fault.PateParameters("there must be one true class for each query")
	case m.NeedsStudent() != (len(p.Students) == queries):
		return nil, fault.PateStudent("interactive, and it alone, needs a student's probabilities for each query")
	}
	var answered, labelled, agreed, correct, plurality int64
	for q := range queries {
		winner := winnerOf(t.row(q))
		if p.Truth != nil && winner == p.Truth[q] {
			plurality++
		}
		student := Student{}
		if m.NeedsStudent() {
			student = p.Students[q]
		}
		for range p.Rounds {
			out, _, err := m.Label(s, t.Votes(q), student)
			if err != nil {
				return nil, err
			}
			if out.Status == Answered {
				answered++
			}
			if out.Label == NoLabel {
				continue
			}
			labelled++
			if out.Label == winner {
				agreed++
			}
			if p.Truth != nil && out.Label == p.Truth[q] {
				correct++
			}
		}
	}
	rounds := int64(p.Rounds)
	all := float64(rounds * int64(queries))
	return &Simulation{
		Queries: queries, Answered: float64(answered) / all, Labelled: float64(labelled) / all,
		Agreement: ratio(agreed, labelled), Accuracy: ratio(correct, labelled), Plurality: float64(plurality) / float64(queries),
		Mean: m.Released(int64(queries), (answered+rounds-1)/rounds), Worst: m.WorstCase(int64(queries)),
	}, nil
}

// winnerOf is the class with most votes; of equal ones, the first.
func winnerOf(counts []uint32) int {
	winner := 0
	for i, n := range counts {
		if n > counts[winner] {
			winner = i
		}
	}
	return winner
}

func ratio(part, whole int64) float64 {
	if whole == 0 {
		return 0
	}
	return float64(part) / float64(whole)
}
