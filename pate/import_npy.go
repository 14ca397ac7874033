package pate

import (
	"bufio"
	"encoding/binary"
	"fmt"
	"io"
	"math"
	"slices"
	"strconv"
	"strings"

	"noisegate.example/internal/fault"
)

// The NPY format: a magic text, a version, the length of a header, the header (a Python dictionary of three members), the elements.
// See numpy.lib.format. Nothing of it is ever executed: an array of objects, which NumPy would unpickle, is refused by its type.
const (
	npyMagic     = "\x93NUMPY"
	maxNPYHeader = 64 << 10
	npyBlock     = 64 << 10
)

// npyHeader is what an array says of itself.
type npyHeader struct {
	number  numberType
	fortran bool // the first axis varies fastest
	shape   []int
}

// numberType decodes the elements of an array: size bytes each.
type numberType struct {
	size   int
	decode func([]byte) (int64, bool) // ok is false for what is no integer
	text   func([]byte) string        // the shortest decimal that stands for a float, nil for integers
}

// decimal is an element as a decimal number, or a text that is none for what is not finite.
func (n numberType) decimal(element []byte) string {
	if n.text != nil {
		return n.text(element)
	}
	value, _ := n.decode(element)
	return strconv.FormatInt(value, 10)
}

// readNPY takes in an array. Elements are looked at as they come, whatever the order of the axes.
func readNPY(r io.Reader, t *tally, named Layout) error {
	in := bufio.NewReaderSize(r, npyBlock)
	h, err := readNPYHeader(in)
	if err != nil {
		return err
	}
	layout, err := t.ensemble.layoutOf(h.shape, named)
	if err != nil {
		return err
	}
	order := axes{sizes: slices.Clone(h.shape), kinds: slices.Clone(shapes()[layout])}
	if err := t.number(order.sizes[slices.Index(order.kinds, queryAxis)]); err != nil {
		return err
	}
	row := order.kinds[0]
	if h.fortran {
		slices.Reverse(order.sizes)
		slices.Reverse(order.kinds)
	}
	return readElements(in, h.number.size, order, func(at [3]int, element []byte) error {
		value, ok := h.number.decode(element)
		if !ok {
			return fault.PateVotes(int64(at[row])+1, "an element is no integer")
		}
		return t.element(layout, at, value, int64(at[row])+1)
	})
}

// readElements gives each element with its place on each axis, and demands that the file ends with the last one.
func readElements(in *bufio.Reader, size int, order axes, each func(at [3]int, element []byte) error) error {
	total, fits := product(order.sizes)
	if !fits {
		return tooMany()
	}
	var at [3]int
	places := make([]int, len(order.sizes)) // the odometer behind at
	block := make([]byte, npyBlock/size*size)
	for left := total; left > 0; {
		chunk := block[:min(len(block), left*size)]
		if _, err := io.ReadFull(in, chunk); err != nil {
			return brokenOff(err)
		}
		left -= len(chunk) / size
		for ; len(chunk) > 0; chunk = chunk[size:] {
			if err := each(at, chunk[:size]); err != nil {
				return err
			}
			for i := len(places) - 1; i >= 0; i-- {
				if places[i]++; places[i] < order.sizes[i] {
					at[order.kinds[i]] = places[i]
					break
				}
				places[i], at[order.kinds[i]] = 0, 0
			}
		}
	}
	switch _, err := in.ReadByte(); err {
	case io.EOF:
		return nil
	case nil:
		return fault.PateVotes(0, "there is more after the last element of the array")
	default:
		return brokenOff(err)
	}
}

// brokenOff is a body that ends before the votes do.
func brokenOff(err error) error {
	if code := fault.CodeOf(err); code != fault.CodeInternal {
		return err // a limit that the border sets
	}
	return fault.PateVotes(0, "the file breaks off").WithCause(err)
}

func readNPYHeader(in io.Reader) (npyHeader, error) {
	var preamble [8]byte
	if _, err := io.ReadFull(in, preamble[:]); err != nil {
		return npyHeader{}, brokenOff(err)
	}
	if string(preamble[:6]) != npyMagic {
		return npyHeader{}, fault.PateVotes(0, "this is no NPY file")
	}
	length := make([]byte, 4)
	switch preamble[6] {
	case 1:
		length = length[:2]
	case 2, 3:
	default:
		return npyHeader{}, fault.PateVotes(0, "the NPY file has a version other than 1, 2 and 3")
	}
	if _, err := io.ReadFull(in, length); err != nil {
		return npyHeader{}, brokenOff(err)
	}
	size := uint32(binary.LittleEndian.Uint16(length))
	if len(length) == 4 {
		size = binary.LittleEndian.Uint32(length)
	}
	if size > maxNPYHeader {
		return npyHeader{}, fault.PateVotes(0, "the header of the NPY file is too long")
	}
	text := make([]byte, size)
	if _, err := io.ReadFull(in, text); err != nil {
		return npyHeader{}, brokenOff(err)
	}
	return parseNPYHeader(string(text))
}

// parseNPYHeader reads {'descr': '<f8', 'fortran_order': False, 'shape': (3, 4), }: these three members, in any order, and no more.
func parseNPYHeader(text string) (npyHeader, error) {
	wrong := fault.PateVotes(0, "the header of the NPY file is not one of a plain array of numbers")
	body, ok := strings.CutPrefix(strings.TrimRight(text, " \n\x00"), "{")
	if !ok {
		return npyHeader{}, wrong
	}
	if body, ok = strings.CutSuffix(body, "}"); !ok {
		return npyHeader{}, wrong
	}
	var h npyHeader
	var seen [3]bool
	for body = strings.TrimSpace(body); body != ""; body = strings.TrimSpace(body) {
		name, rest, found := strings.Cut(body, ":")
		place := slices.Index([]string{"'descr'", "'fortran_order'", "'shape'"}, strings.TrimSpace(name))
		if !found || place < 0 || seen[place] {
			return npyHeader{}, wrong
		}
		seen[place] = true
		rest = strings.TrimSpace(rest)
		var err error
		switch place {
		case 0:
			body, err = h.readType(rest)
		case 1:
			body, err = h.readOrder(rest)
		default:
			body, err = h.readShape(rest)
		}
		if err != nil {
			return npyHeader{}, err
		}
		body = strings.TrimSpace(body)
		if after, comma := strings.CutPrefix(body, ","); comma {
			body = after
		} else if body != "" {
			return npyHeader{}, wrong
		}
	}
	if seen != [3]bool{true, true, true} {
		return npyHeader{}, wrong
	}
	return h, nil
}

// readType reads '<f8' and gives what comes after it.
func (h *npyHeader) readType(text string) (rest string, err error) {
	refused := fault.PateVotes(0, "the array must hold plain numbers of 1 to 8 bytes; objects (pickles), texts and records are refused")
	name, ok := strings.CutPrefix(text, "'")
	if !ok {
		return "", refused
	}
	if name, rest, ok = strings.Cut(name, "'"); !ok {
		return "", refused
	}
	if h.number, ok = numberTypeOf(name); !ok {
		return "", refused
	}
	return rest, nil
}

func (h *npyHeader) readOrder(text string) (rest string, err error) {
	if after, ok := strings.CutPrefix(text, "True"); ok {
		h.fortran = true
		return after, nil
	}
	if after, ok := strings.CutPrefix(text, "False"); ok {
		return after, nil
	}
	return "", fault.PateVotes(0, "the array is in neither C nor Fortran order")
}

// readShape reads (250, 9000).
func (h *npyHeader) readShape(text string) (rest string, err error) {
	wrong := fault.PateVotes(0, "the array must have two or three dimensions of at least one element")
	inner, ok := strings.CutPrefix(text, "(")
	if !ok {
		return "", wrong
	}
	if inner, rest, ok = strings.Cut(inner, ")"); !ok {
		return "", wrong
	}
	for field := range strings.SplitSeq(strings.TrimSuffix(strings.TrimSpace(inner), ","), ",") {
		n, err := strconv.ParseUint(strings.TrimSpace(field), 10, 31)
		if err != nil || n == 0 || len(h.shape) == 3 {
			return "", wrong
		}
		h.shape = append(h.shape, int(n))
	}
	if len(h.shape) < 2 {
		return "", wrong
	}
	return rest, nil
}

// numberTypeOf decodes a type such as <i8: order of bytes, kind, bytes. Booleans count as 0 and 1.
func numberTypeOf(name string) (numberType, bool) {
	if len(name) != 3 {
		return numberType{}, false
	}
	var order binary.ByteOrder = binary.LittleEndian
	switch name[0] {
	case '>':
		order = binary.BigEndian
	case '<', '|':
	default:
		return numberType{}, false
	}
	integer := func(size int, decode func([]byte) (int64, bool)) numberType {
		return numberType{size: size, decode: decode}
	}
	n, ok := map[string]numberType{
		"b1": integer(1, func(b []byte) (int64, bool) { return int64(b[0]), b[0] <= 1 }),
		"u1": integer(1, func(b []byte) (int64, bool) { return int64(b[0]), true }),
		"i1": integer(1, func(b []byte) (int64, bool) { return int64(int8(b[0])), true }),
		"u2": integer(2, func(b []byte) (int64, bool) { return int64(order.Uint16(b)), true }),
		"i2": integer(2, func(b []byte) (int64, bool) { return int64(int16(order.Uint16(b))), true }),
		"u4": integer(4, func(b []byte) (int64, bool) { return int64(order.Uint32(b)), true }),
		"i4": integer(4, func(b []byte) (int64, bool) { return int64(int32(order.Uint32(b))), true }),
		"u8": integer(8, func(b []byte) (int64, bool) { n := order.Uint64(b); return int64(n), n <= math.MaxInt64 }),
		"i8": integer(8, func(b []byte) (int64, bool) { return int64(order.Uint64(b)), true }),
		"f2": float(2, func(b []byte) float64 { return half(order.Uint16(b)) }),
		"f4": float(4, func(b []byte) float64 { return float64(math.Float32frombits(order.Uint32(b))) }),
		"f8": float(8, func(b []byte) float64 { return math.Float64frombits(order.Uint64(b)) }),
	}[name[1:]]
	return n, ok && (n.size == 1 || name[0] != '|')
}

// float is the type of floats of so many bytes.
func float(size int, read func([]byte) float64) numberType {
	return numberType{
		size:   size,
		decode: func(b []byte) (int64, bool) { f := read(b); return integral(f), isIntegral(f) },
		text:   func(b []byte) string { return strconv.FormatFloat(read(b), 'g', -1, max(32, 8*size)) },
	}
}

// half is the value of an IEEE 754 number of 16 bits: a sign, 5 bits of exponent, 10 of fraction.
func half(bits uint16) float64 {
	sign, exponent, fraction := 1-2*float64(bits>>15), int(bits>>10&31), float64(bits&1023)
	switch exponent {
	case 0:
		return sign * math.Ldexp(fraction, -24)
	case 31:
		return math.NaN() // or infinite: neither a count nor a probability
	default:
		return sign * math.Ldexp(1024+fraction, exponent-25)
	}
}

// LabelsNPY is an NPY file of 32-bit integers, which numpy.load reads. -1 stands for no label, as ignore_index does in losses.
func LabelsNPY(labels []int32) []byte {
	header := fmt.Sprintf("{'descr': '<i4', 'fortran_order': False, 'shape': (%d,), }", len(labels))
	// Magic, version and length take 10 bytes; elements begin at a multiple of 64.
	header += strings.Repeat(" ", 63-(10+len(header))%64) + "\n"
	out := append([]byte(npyMagic), 1, 0)
	out = binary.LittleEndian.AppendUint16(out, uint16(len(header)))
	out = append(out, header...)
	for _, label := range labels {
		out = binary.LittleEndian.AppendUint32(out, uint32(label))
	}
	return out
}
