// Package digits is a small task for teachers and a student: handwritten digits of 8 by 8 pixels, and a classifier that learns them.
//
// It knows pixels and gradients. It does not know privacy, votes or HTTP: it is what any ML team brings along. The digits that it
// generates, and all that is learned from given digits, are the same on every machine.
package digits

import (
	"encoding/csv"
	"fmt"
	"io"
	"math"
	"strconv"
)

const (
	// Classes is how many digits there are.
	Classes = 10
	side    = 8
	pixels  = side * side
)

// Digit is one picture, each pixel from 0 to 1, and what it shows.
type Digit struct {
	Pixels [pixels]float64
	Label  int
}

// glyphs are the digits as a seven-segment display shows them; a bit for each segment.
var glyphs = [Classes]byte{0b1110111, 0b0100100, 0b1011101, 0b1101101, 0b0101110, 0b1101011, 0b1111011, 0b0100101, 0b1111111, 0b1101111}

// segment is a line between two points, (x, y) from the upper left corner.
type segment struct{ x1, y1, x2, y2 float64 }

// segments of a seven-segment display: top, upper left, upper right, middle, lower left, lower right, bottom.
var segments = [7]segment{{2, 1, 5, 1}, {2, 1, 2, 3.5}, {5, 1, 5, 3.5}, {2, 3.5, 5, 3.5}, {2, 3.5, 2, 6}, {5, 3.5, 5, 6}, {2, 6, 5, 6}}

// Generate draws n digits, every class in turn: shifted, slanted, of varying size, with faint and noisy strokes.
func Generate(n int, seed uint64) []Digit {
	r := random(seed)
	list := make([]Digit, n)
	for i := range list {
		list[i] = draw(i%Classes, &r)
	}
	return list
}

func draw(label int, r *random) Digit {
	d := Digit{Label: label}
	dx, dy := 0.7*r.signed(), 0.7*r.signed()
	slant, size := 0.2*r.signed(), 1+0.12*r.signed()
	for s, line := range segments {
		if glyphs[label]>>s&1 == 0 {
			continue
		}
		strength := 0.5 + 0.5*r.unit()
		const steps = 8
		for k := range steps + 1 {
			t := float64(k) / steps
			x, y := line.x1+t*(line.x2-line.x1)-3.5, line.y1+t*(line.y2-line.y1)-3.5
			d.dot(3.5+size*(x-slant*y)+dx, 3.5+size*y+dy, strength/2)
		}
	}
	for i := range d.Pixels {
		d.Pixels[i] = min(max(d.Pixels[i]+0.15*r.normal(), 0), 1)
	}
	return d
}

// dot adds ink to the four pixels around a point.
func (d *Digit) dot(x, y, ink float64) {
	fx, fy := math.Floor(x), math.Floor(y)
	for _, c := range [4][2]float64{{0, 0}, {1, 0}, {0, 1}, {1, 1}} {
		px, py := fx+c[0], fy+c[1]
		if px >= 0 && px < side && py >= 0 && py < side {
			d.Pixels[int(py)*side+int(px)] += ink * (1 - math.Abs(x-px)) * (1 - math.Abs(y-py))
		}
	}
}

// Read reads digits from a CSV file with a header: 64 pixels from 0 to 16 and the label, as the UCI data set optdigits has them (E.
// Alpaydin, C. Kaynak 1998, doi:10.24432/C50P49).
func Read(r io.Reader) ([]Digit, error) {
	rows, err := csv.NewReader(r).ReadAll()
	if err != nil {
		return nil, err
	}
	var list []Digit
	for i, row := range rows[min(1, len(rows)):] {
		var d Digit
		if len(row) != pixels+1 {
			return nil, fmt.Errorf("digits: row %d has %d fields, not %d", i+1, len(row), pixels+1)
		}
		for j, text := range row[:pixels] {
			ink, err := strconv.Atoi(text)
			if err != nil {
				return nil, fmt.Errorf("digits: row %d: %w", i+1, err)
			}
			d.Pixels[j] = float64(ink) / 16
		}
		if d.Label, err = strconv.Atoi(row[pixels]); err != nil || d.Label < 0 || d.Label >= Classes {
			return nil, fmt.Errorf("digits: row %d shows no digit", i+1)
		}
		list = append(list, d)
	}
	return list, nil
}

// Shuffle puts digits in another order, always the same one: writers come one after another in the files.
func Shuffle(list []Digit) {
	r := random(4)
	r.shuffle(len(list), func(i, j int) { list[i], list[j] = list[j], list[i] })
}

// Model is a linear classifier with softmax outputs.
type Model struct{ weights [Classes][pixels + 1]float64 }

// Training of models: passes over the digits, size of a step, and how much weights shrink with each.
const (
	epochs    = 30
	rate      = 0.1
	shrinkage = 1e-4
)

// Train fits a model by stochastic gradient descent. Digits whose label is negative have none and are left out.
func Train(examples []Digit) *Model {
	m := new(Model)
	r := random(1)
	order := make([]int, 0, len(examples))
	for i, d := range examples {
		if d.Label >= 0 {
			order = append(order, i)
		}
	}
	for range epochs {
		r.shuffle(len(order), func(i, j int) { order[i], order[j] = order[j], order[i] })
		for _, i := range order {
			m.step(examples[i])
		}
	}
	return m
}

func (m *Model) step(d Digit) {
	p := m.Probabilities(d)
	for class := range Classes {
		gradient := p[class]
		if class == d.Label {
			gradient--
		}
		w := &m.weights[class]
		for i, ink := range d.Pixels {
			w[i] -= rate * (gradient*ink + shrinkage*w[i])
		}
		w[pixels] -= rate * gradient
	}
}

// Probabilities are the model's, for each class.
func (m *Model) Probabilities(d Digit) [Classes]float64 {
	var p [Classes]float64
	largest := math.Inf(-1)
	for class := range Classes {
		w := &m.weights[class]
		sum := w[pixels]
		for i, ink := range d.Pixels {
			sum += w[i] * ink
		}
		p[class] = sum
		largest = max(largest, sum)
	}
	total := 0.0
	for class := range p {
		p[class] = math.Exp(p[class] - largest)
		total += p[class]
	}
	for class := range p {
		p[class] /= total
	}
	return p
}

// Label is the most probable class.
func (m *Model) Label(d Digit) int {
	p := m.Probabilities(d)
	best := 0
	for class := range p {
		if p[class] > p[best] {
			best = class
		}
	}
	return best
}

// Accuracy is the share of digits that the model knows.
func (m *Model) Accuracy(list []Digit) float64 {
	right := 0
	for _, d := range list {
		if m.Label(d) == d.Label {
			right++
		}
	}
	return float64(right) / float64(max(len(list), 1))
}

// Teachers trains n models on parts of the data that have no example in common: one person's digits, one teacher.
func Teachers(n int, data []Digit) []*Model {
	list := make([]*Model, n)
	for i := range list {
		list[i] = Train(data[i*len(data)/n : (i+1)*len(data)/n])
	}
	return list
}

// Votes are the labels that each teacher gives to each digit.
func Votes(teachers []*Model, public []Digit) [][]byte {
	votes := make([][]byte, len(teachers))
	for i, teacher := range teachers {
		votes[i] = make([]byte, len(public))
		for j, d := range public {
			votes[i][j] = byte(teacher.Label(d))
		}
	}
	return votes
}

// Plurality is the label with most votes for each digit, the smallest of equal ones: what nobody outside may see.
func Plurality(votes [][]byte) []int {
	labels := make([]int, len(votes[0]))
	for j := range labels {
		var counts [Classes]int
		for i := range votes {
			counts[votes[i][j]]++
		}
		for class, n := range counts {
			if n > counts[labels[j]] {
				labels[j] = class
			}
		}
	}
	return labels
}

// NPY is the votes as numpy.save writes an array of bytes, a row for each teacher.
func NPY(votes [][]byte) []byte {
	header := fmt.Sprintf("{'descr': '|u1', 'fortran_order': False, 'shape': (%d, %d), }\n", len(votes), len(votes[0]))
	out := append([]byte("\x93NUMPY\x01\x00"), byte(len(header)), byte(len(header)>>8))
	out = append(out, header...)
	for _, row := range votes {
		out = append(out, row...)
	}
	return out
}

// random is the generator SplitMix64 (Steele, Lea, Flood 2014). It makes pictures, never noise.
type random uint64

func (r *random) next() uint64 {
	*r += 0x9e3779b97f4a7c15
	z := uint64(*r)
	z = (z ^ z>>30) * 0xbf58476d1ce4e5b9
	z = (z ^ z>>27) * 0x94d049bb133111eb
	return z ^ z>>31
}

// shuffle is that of Fisher and Yates; the bias of the remainder does not matter here.
func (r *random) shuffle(n int, swap func(i, j int)) {
	for i := n - 1; i > 0; i-- {
		swap(i, int(r.next()%uint64(i+1)))
	}
}

// unit is uniform in [0, 1).
func (r *random) unit() float64 { return float64(r.next()>>11) / (1 << 53) }

// signed is uniform in [-1, 1).
func (r *random) signed() float64 { return 2*r.unit() - 1 }

// normal is nearly a standard normal: a sum of twelve.
func (r *random) normal() float64 {
	sum := -6.0
	for range 12 {
		sum += r.unit()
	}
	return sum
}
