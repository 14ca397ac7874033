package keys

import (
	"crypto/sha256"
	"encoding/binary"
	"fmt"

	"noisegate.example/catalog"
	"noisegate.example/sqlrewrite/internal/algebra"
	"noisegate.example/sqlrewrite/internal/sqlprint"
)

// Name identifies a list within one snapshot.
type Name [sha256.Size]byte

// Question asks for a list.
type Question struct {
	Name Name
	post *sqlprint.Post
}

// Post returns the query for a list, whose rows are the distinct tuples of keys, as text. It reads public tables and constants alone.
func (q Question) Post() sqlprint.Post { return *q.post }

// Lists has the lists that are known. A query that needs others ends with [Needed]. With a nil *Lists no list is asked for: keys follow
// from policy and text alone.
type Lists struct {
	Known   map[Name]Tuples
	Settled bool // no others will be asked for: a list that is not known is unavailable
}

// Tuples are the tuples of a list. Nil: the list is unavailable, and narrows nothing. Empty: no row can have a key.
type Tuples [][]catalog.Key

// Needed is the error of a query that waits for lists. Plan it again once they are known.
type Needed struct{ Questions []Question }

func (n *Needed) Error() string {
	return fmt.Sprintf("sqlrewrite: %d lists of keys are needed", len(n.Questions))
}

// mostLists caps the lists of one query; further ones narrow nothing.
const mostLists = 16

// MostTuples caps the tuples of a list; a longer list is unavailable.
const MostTuples = 100_000

// Asked collects the lists that one query asks for.
type Asked struct {
	known   *Lists
	on      *catalog.Snapshot
	names   map[Name]bool
	missing []Question
}

// NewAsked starts from the lists that are known; nil where none are asked for.
func NewAsked(known *Lists, on *catalog.Snapshot) *Asked {
	if known == nil {
		return nil
	}
	return &Asked{known: known, on: on, names: make(map[Name]bool)}
}

// Again starts anew from the same known lists; nil where none are asked for.
func (a *Asked) Again() *Asked {
	if a == nil {
		return nil
	}
	return NewAsked(a.known, a.on)
}

// List implements [algebra.List], and collects the lists that are not known.
func (a *Asked) List(l algebra.KeyList) (tuples [][]catalog.Key, known bool) {
	text, args, ok := sqlprint.PrintKeyList(l, MostTuples+1)
	if !ok {
		return nil, true
	}
	name := nameOf(text, args)
	if !a.names[name] && len(a.names) >= mostLists {
		return nil, true
	}
	if tuples, known = a.known.Known[name]; known || a.known.Settled {
		a.names[name] = true
		return tuples, true
	}
	if !a.names[name] {
		a.names[name] = true
		post := sqlprint.NewPost(text, args, sqlprint.PublicPreconditions(l.Tables()), nil)
		sqlprint.PostOn(post, a.on, nil)
		a.missing = append(a.missing, Question{name, post})
	}
	return nil, false
}

// Needed returns a [Needed] error with the lists that are missing; nil: none is.
func (a *Asked) Needed() error {
	if a == nil || len(a.missing) == 0 {
		return nil
	}
	return &Needed{a.missing}
}

func nameOf(text string, args []any) (name Name) {
	h := sha256.New()
	add := func(s string) {
		h.Write(binary.AppendUvarint(nil, uint64(len(s))))
		h.Write([]byte(s))
	}
	add(text)
	for _, a := range args {
		switch a := a.(type) {
		case []*string:
			add(fmt.Sprint(len(a)))
			for _, s := range a {
				if s == nil {
					add("null")
					continue
				}
				add("text")
				add(*s)
			}
		default:
			add(fmt.Sprint(a))
		}
	}
	h.Sum(name[:0])
	return name
}
