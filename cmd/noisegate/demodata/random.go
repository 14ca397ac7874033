package demodata

// random is SplitMix64 (Steele, Lea and Flood 2014): short, and the same for ever. It invents data; it never makes noise.
type random struct{ state uint64 }

func (r *random) next() uint64 {
	r.state += 0x9e3779b97f4a7c15
	z := r.state
	z = (z ^ z>>30) * 0xbf58476d1ce4e5b9
	z = (z ^ z>>27) * 0x94d049bb133111eb
	return z ^ z>>31
}

// below is a number in [0, n). The bias of the remainder is below n/2⁶⁴, which invented people can live with.
func (r *random) below(n int) int { return int(r.next() % uint64(n)) }

// between is a number in [lo, hi].
func (r *random) between(lo, hi int) int { return lo + r.below(hi-lo+1) }

// perMille is true p times in a thousand.
func (r *random) perMille(p int) bool { return r.below(1000) < p }

// bell is a number around mean: the sum of four uniform ones, whose standard deviation is spread.
func (r *random) bell(mean, spread int) int {
	half := (spread*866 + 500) / 1000 // the sum of 4 uniforms on [-h, h] has standard deviation 2h/√3 = h/0.866
	sum := 0
	for range 4 {
		sum += r.between(-half, half)
	}
	return mean + sum
}

// waiting is the number of failures before a success of probability p/1000, at most limit.
func (r *random) waiting(p, limit int) int {
	n := 0
	for n < limit && !r.perMille(p) {
		n++
	}
	return n
}

// pick draws one value of a table by weight.
func (r *random) pick(table []weight) string {
	total := 0
	for _, w := range table {
		total += w.count
	}
	at := r.below(total)
	for _, w := range table {
		if at < w.count {
			return w.value
		}
		at -= w.count
	}
	panic("demodata: weights do not add up")
}

// deck gives n cards in random order whose shares are those of the table, as exactly as whole numbers allow (what rounding
// leaves over is carried to the next value). With n equal to the table's total, the counts are the table's own.
func (r *random) deck(table []weight, n int) []string {
	total := 0
	for _, w := range table {
		total += w.count
	}
	cards := make([]string, 0, n)
	carried := 0 // rounding errors are carried to the next value, so that the shares add up to n
	for _, w := range table {
		carried += w.count * n
		for range carried / total {
			cards = append(cards, w.value)
		}
		carried %= total
	}
	for i := len(cards) - 1; i > 0; i-- {
		j := r.below(i + 1)
		cards[i], cards[j] = cards[j], cards[i]
	}
	return cards
}
