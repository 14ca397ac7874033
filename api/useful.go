package api

import "fmt"

// Useful is how many rows of an answer are useful: the half-width of each interval is at most a quarter of its value, of a share at most
// five points. What the first rows are chosen by has the intervals of all groups together.
type Useful struct {
	Rows int `json:"rows"`
	Of   int `json:"of"` // all rows
}

// Text says it for people; "" where it is not worth saying, as all rows are useful.
func (u *Useful) Text() string {
	switch {
	case u == nil || u.Rows == u.Of:
		return ""
	case u.Of == 1:
		return "this is mostly noise"
	}
	return fmt.Sprintf("%d of %d rows are useful; the rest is mostly noise", u.Rows, u.Of)
}

// UsefulEstimate is what a row has to hold to be useful: a function of text, policy and other public facts.
type UsefulEstimate struct {
	Output string  `json:"output"`       // of several, the one that the fewest rows can be useful by
	Needs  Decimal `json:"needs"`        // so much of it, in its unit, rounded up to three digits
	Of     int64   `json:"of,omitempty"` // rows of the answer; absent where rows decide
	// Possible is how many rows can hold so much, if all that the people add is where it is needed; absent where nothing says how many people
	// or rows there are.
	Possible *int64 `json:"possible,omitempty"`
}

// Text says it for people.
func (u *UsefulEstimate) Text() string {
	text := fmt.Sprintf("a row is useful from %s = %s on", u.Output, u.Needs)
	if u.Possible != nil {
		text += fmt.Sprintf("; at most %d of %d rows can be", *u.Possible, u.Of)
	}
	return text
}
