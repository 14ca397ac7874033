package api

import "fmt"

// Useful counts the useful rows of an answer. A row is useful if the half-width of each of its intervals is at most a quarter of the value,
// or five points for a share. The number by which the first rows are chosen is judged by its interval for all groups together.
type Useful struct {
	Rows int `json:"rows"`
	Of   int `json:"of"` // all rows
}

// Text is a sentence for people; "" where all rows are useful.
func (u *Useful) Text() string {
	switch {
	case u == nil || u.Rows == u.Of:
		return ""
	case u.Of == 1:
		return "this is mostly noise"
	}
	return fmt.Sprintf("%d of %d rows are useful; the rest is mostly noise", u.Rows, u.Of)
}

// UsefulEstimate says from which value on a row is useful, and how many rows can be. It depends on the text, the policy and other public
// facts alone.
type UsefulEstimate struct {
	Output string  `json:"output"` // the output for which a useful row needs most
	Needs  Decimal `json:"needs"`  // the least useful value of that output, in its unit, rounded up to three digits
	// Counts is "rows" or "people" for a mean, a share or a spread: Needs is then about how many it is computed from in a useful row. It is
	// absent where Needs is a value of the output.
	Counts string `json:"counts,omitempty"`
	Of     int64  `json:"of,omitempty"` // rows of the answer; absent where the data decide
	// Possible is the largest number of rows that can be useful, however the people are spread over them, and whatever their values are;
	// absent where the number of people or of rows is not public.
	Possible *int64 `json:"possible,omitempty"`
}

// Text is a sentence for people.
func (u *UsefulEstimate) Text() string {
	text := fmt.Sprintf("a row is useful from %s = %s on", u.Output, u.Needs)
	if u.Counts != "" {
		text = fmt.Sprintf("a row is useful where %s is computed from about %s %s or more", u.Output, u.Needs, u.Counts)
	}
	if u.Possible != nil {
		text += fmt.Sprintf("; at most %d of %d rows can be", *u.Possible, u.Of)
	}
	return text
}
