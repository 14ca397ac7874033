package keys

import (
	"crypto/sha256"
	"encoding/binary"
	"fmt"

	"noisegate.example/catalog"
	"noisegate.example/sqlrewrite/internal/algebra"
	"noisegate.example/sqlrewrite/internal/sqlprint"
)

// Name identifies what is asked, within one snapshot.
type Name [sha256.Size]byte

// Question asks for a list.
type Question struct {
	Name Name
	post *sqlprint.Post
}

// Post is what the database is asked: the different tuples of keys, each as text. It reads public tables and constants alone.
func (q Question) Post() sqlprint.Post { return *q.post }

// Lists are what is known of lists, by what asks for them. A query that needs others ends with [Needed]. Nil lists are none, which nobody
// asks for: keys are then what policy and text give by themselves.
type Lists struct {
	Known   map[Name]Tuples
	Settled bool // no others will be asked for: what is not known is not to be had
}

// Tuples are the tuples of a list; nil: it is not to be had, and narrows nothing.
type Tuples [][]catalog.Key

// Needed is the error of a query that waits for lists: it is asked again once they are known.
type Needed struct{ Questions []Question }

func (n *Needed) Error() string {
	return fmt.Sprintf("sqlrewrite: %d lists of keys are needed", len(n.Questions))
}

// mostLists caps the lists of one query; others narrow nothing.
const mostLists = 16

// MostTuples caps a list: a longer one is not to be had.
const MostTuples = 100_000

// Asked are the lists that one query asks for.
type Asked struct {
	known   *Lists
	on      *catalog.Snapshot
	names   map[Name]bool
	missing []Question
}

// NewAsked begins with what is known; nil where nobody asks.
func NewAsked(known *Lists, on *catalog.Snapshot) *Asked {
	if known == nil {
		return nil
	}
	return &Asked{known: known, on: on, names: make(map[Name]bool)}
}

// Again asks for lists anew, of what is known; nil where nobody asks.
func (a *Asked) Again() *Asked {
	if a == nil {
		return nil
	}
	return NewAsked(a.known, a.on)
}

// List is [algebra.StatementFacts].List.
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

// Needed is the error of a query some of whose lists are not known; nil: all are.
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
