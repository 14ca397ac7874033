package suggest

import (
	"errors"
	"slices"
	"strings"

	"noisegate.example/catalog"
	"noisegate.example/internal/fault"
	"noisegate.example/sqlrewrite/internal/parse"
)

// AnswerMark stands in the second of two suggested queries for what the first one answers.
const AnswerMark = "<answer>"

// Limits of the search for a suggestion: of the text, of repairs one after another, and of texts that are tried.
const (
	maxSuggestBytes = 4 << 10
	maxRepairs      = 3
	maxTries        = 12
)

// Suggest adds to a refusal the words that it points at, as the detail "near", and a [fault.Suggestion], where a small change to the text
// makes a query that is accepted. Where it takes two queries, [AnswerMark] stands in the second one for the first one's answer. Other
// errors come back as they are.
//
// What it says depends on the text, the policy and what read refuses alone. Every suggestion was accepted by read before it is made.
func Suggest(err error, sql string, snapshot *catalog.Snapshot, read func(text string) error) error {
	var refusal *fault.Error
	if !errors.As(err, &refusal) || len(sql) > maxSuggestBytes {
		return err
	}
	q := parse.CutText(sql).Statement()
	i := q.At(refusal.Pos)
	if i < 0 && refusal.Code == fault.CodeSyntax { // the text ends too early
		i = len(q.Tokens) - 1
	}
	if i < 0 {
		return err
	}
	refusal = refusal.WithDetails(fault.Detail{Name: "near", Value: q.Slice(i, i+1)})
	if refusal.Code == fault.CodeTooComplex {
		return refusal
	}
	s := &suggester{snapshot: snapshot, read: read}
	if first, then, ok := s.inTwoSteps(q, i, refusal); ok {
		return refusal.WithSuggestion(fault.Suggestion{SQL: first, Then: then})
	}
	text, differs, ok := s.repaired(q, i, refusal, maxRepairs)
	if !ok {
		return refusal
	}
	if text == s.repairQuotes(q, i, refusal) {
		refusal = refusal.WithHint(s.quotesHint(q, i))
	}
	return refusal.WithSuggestion(fault.Suggestion{SQL: text, Differs: strings.Join(slices.Compact(differs), "; ")})
}

// suggester looks for texts that are accepted.
type suggester struct {
	snapshot *catalog.Snapshot
	read     func(text string) error // refuses a text, or accepts it
	tries    int
}

// refusalOf is why a text is refused; ok is false where it is accepted, and where nothing more is tried.
func (s *suggester) refusalOf(text string) (refusal *fault.Error, accepted bool) {
	if s.tries++; s.tries > maxTries {
		return nil, false
	}
	err := s.read(text)
	if err == nil {
		return nil, true
	}
	errors.As(err, &refusal)
	return refusal, false
}

// repaired is the first text that is accepted, of those that so many repairs make, one after another, and how its answer differs.
func (s *suggester) repaired(q *parse.QueryText, i int, refusal *fault.Error, left int) (repaired string, differs []string, ok bool) {
	for _, repair := range s.repairs() {
		change := repair.change
		text := change(q, i, refusal)
		if text == "" || text == q.Text {
			continue
		}
		if repair.differs != "" {
			differs = []string{repair.differs}
		}
		next, accepted := s.refusalOf(text)
		if accepted {
			return text, differs, true
		}
		if next != nil && left > 1 {
			changed := parse.CutText(text)
			if at := changed.At(next.Pos); at >= 0 {
				if mended, more, ok := s.repaired(changed, at, next, left-1); ok {
					return mended, append(differs, more...), true
				}
			}
		}
		differs = nil
	}
	return "", nil, false
}

// inTwoSteps takes a query over people that stands for a value out of another one.
func (s *suggester) inTwoSteps(q *parse.QueryText, i int, refusal *fault.Error) (first, then string, ok bool) {
	if refusal.Code != fault.CodeUnsupported {
		return "", "", false
	}
	if q.Word(i) == "SELECT" {
		i--
	}
	if q.Word(i) != "(" || q.Word(i+1) != "SELECT" {
		return "", "", false
	}
	end := q.Closing(i)
	first, then = q.Slice(i+1, end-1), q.Replaced(i, end, AnswerMark)
	if _, accepted := s.refusalOf(first); !accepted {
		return "", "", false
	}
	_, accepted := s.refusalOf(strings.ReplaceAll(then, AnswerMark, "42"))
	return first, then, accepted
}
