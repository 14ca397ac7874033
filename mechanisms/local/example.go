package local

import (
	"crypto/sha256"
	"encoding/binary"
	"math/big"

	"noisegate.example/mechanisms"
)

// Example is a test vector for authors of clients: with these draws, in this order, this truth is reported so. A draw of an integer
// below n is that integer; a draw of Laplace noise is the noise.
type Example struct {
	Truth  []int64
	Draws  []int64
	Report Report
}

// examples is how many vectors a protocol has.
const examples = 8

// Examples are test vectors; they are the same each time, and no device's.
func (p *Protocol) Examples() []Example {
	list := make([]Example, examples)
	for i := range list {
		tape := &tape{name: string(p.parameters.Mechanism), number: i}
		truth := p.someTruth(i)
		report := p.scheme.report(tape, truth)
		list[i] = Example{Truth: truth, Draws: tape.drawn, Report: report}
	}
	return list
}

// someTruth is a value from one end of the values to the other.
func (p *Protocol) someTruth(i int) []int64 {
	switch p.parameters.Kind {
	case Choice:
		return []int64{int64(i * (p.parameters.Size - 1) / (examples - 1))}
	case Number:
		return []int64{int64(i * Grid / (examples - 1))}
	default:
		truth := make([]int64, p.parameters.Size)
		truth[i%len(truth)] += Whole / examples * int64(i)
		truth[0] += Whole - Whole/examples*int64(i)
		return truth
	}
}

// tape is made-up randomness that remembers what was drawn: SHA-256 of a name and two counters.
type tape struct {
	name   string
	number int
	drawn  []int64
}

func (t *tape) word() uint64 {
	text := binary.BigEndian.AppendUint64(nil, uint64(t.number))
	text = binary.BigEndian.AppendUint64(text, uint64(len(t.drawn)))
	sum := sha256.Sum256(append(text, t.name...))
	return binary.BigEndian.Uint64(sum[:])
}

func (t *tape) uniform(n uint64) uint64 {
	x := t.word() % n
	t.drawn = append(t.drawn, int64(x))
	return x
}

// laplace is noise of a size that the law may have: up to its 95 % half-width.
func (t *tape) laplace(law *mechanisms.Laplace, value int64) *big.Int {
	reach := law.HalfWidth(0.95).Int64()
	noise := int64(t.word()%uint64(2*reach+1)) - reach
	t.drawn = append(t.drawn, noise)
	return big.NewInt(value + noise)
}
