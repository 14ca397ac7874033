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
