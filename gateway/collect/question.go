package collect

import (
	"crypto/ed25519"
	"errors"
	"regexp"
	"slices"
	"time"
	"unicode"
	"unicode/utf8"

	"noisegate.example/api"
	"noisegate.example/budget/journal"
	"noisegate.example/internal/fault"
	"noisegate.example/mechanisms"
	"noisegate.example/mechanisms/local"
)

// Limits of a definition.
const (
	maxRounds = 1000
	maxValue  = 256 // bytes of a name in the domain
)

// question is what a collection asks, as it is stored. Its mechanism is never auto.
type question struct {
	Name         string      `json:"-"`
	Kind         string      `json:"kind"`
	Domain       []string    `json:"domain,omitempty"`
	Low          api.Decimal `json:"low,omitempty"`
	High         api.Decimal `json:"high,omitempty"`
	Mechanism    string      `json:"mechanism"`
	Epsilon      api.Decimal `json:"epsilon"`
	Rounds       int64       `json:"rounds"`
	EnrolmentKey string      `json:"enrolment_key"`
}

// collection is a question with all that follows from it.
type collection struct {
	id        int64
	question  question
	definedAt time.Time
	protocol  *local.Protocol
	bounds    local.Range // of a number
	key       ed25519.PublicKey
}

// collectionName is what a collection may be called: a part of a URL that needs no escapes.
var collectionName = regexp.MustCompile(`^[a-z][a-z0-9_-]{0,62}$`)

// newQuestion checks a definition member by member.
func newQuestion(name string, d api.CollectionDefinition) (*question, error) {
	if !collectionName.MatchString(name) {
		return nil, fault.CollectDefinition("its name", "1 to 63 of a-z, 0-9, _ and -, beginning with a letter")
	}
	q := &question{Name: name, Kind: d.Kind, Domain: d.Domain, Low: d.Low, High: d.High, Mechanism: d.Mechanism, Epsilon: d.Epsilon,
		Rounds: 1, EnrolmentKey: d.EnrolmentKey}
	if d.Rounds != nil {
		q.Rounds = *d.Rounds
	}
	c, err := q.open()
	if err != nil {
		return nil, err
	}
	q.Mechanism = string(c.protocol.Parameters().Mechanism)
	q.Epsilon = api.Decimal(c.protocol.Parameters().Epsilon.String())
	return q, nil
}

// open makes a collection of a question. Its errors are collect/invalid-definition.
func (q *question) open() (*collection, error) {
	c := &collection{question: *q}
	if q.Rounds < 1 || q.Rounds > maxRounds {
		return nil, fault.CollectDefinition("rounds", "1 to 1000")
	}
	size := len(q.Domain)
	if q.Kind == string(local.Number) {
		var err error
		if c.bounds, err = local.ParseRange(string(q.Low), string(q.High)); err != nil || size > 0 {
			return nil, fault.CollectDefinition("low and high", "two decimal numbers, the smaller one first, without a domain")
		}
		size = 1
	} else if q.Low != "" || q.High != "" {
		return nil, fault.CollectDefinition("low and high", "absent but for a number")
	}
	if !validDomain(q.Domain) {
		return nil, fault.CollectDefinition("domain", "different names of 1 to 256 bytes, without control characters")
	}
	epsilon, err := mechanisms.ParseEpsilon(string(q.Epsilon))
	if err != nil {
		return nil, fault.CollectDefinition("epsilon", "a decimal number from 0.01 to 16")
	}
	c.protocol, err = local.New(local.Parameters{Kind: local.Kind(q.Kind), Mechanism: local.Mechanism(q.Mechanism), Epsilon: epsilon,
		Size: size})
	switch {
	case errors.Is(err, local.ErrEpsilon):
		return nil, fault.CollectDefinition("epsilon", "a decimal number from 0.01 to 16")
	case errors.Is(err, local.ErrKind):
		return nil, fault.CollectDefinition("kind", "choice, number or vector")
	case errors.Is(err, local.ErrMechanism):
		return nil, fault.CollectDefinition("mechanism", "auto, or krr, sue, oue or olh for a choice, duchi, piecewise or laplace for a "+
			"number, laplace for a vector")
	case err != nil:
		return nil, fault.CollectDefinition("domain", "a list of 2 to 10000 values for a choice, 1000 for sue and oue, or of 2 to 1000 "+
			"coordinates for a vector")
	}
	if c.key, err = journal.ParsePublicKey([]byte(q.EnrolmentKey)); err != nil {
		return nil, fault.CollectDefinition("enrolment_key", "a public key of Ed25519 as PEM text")
	}
	return c, nil
}

func validDomain(names []string) bool {
	sorted := slices.Sorted(slices.Values(names))
	invalid := func(name string) bool { return !validText(name, maxValue) }
	return len(slices.Compact(sorted)) == len(names) && !slices.ContainsFunc(names, invalid)
}

// validText reports whether a text has 1 to so many bytes, all of characters that can be shown.
func validText(text string, most int) bool {
	if text == "" || len(text) > most || !utf8.ValidString(text) {
		return false
	}
	for _, r := range text {
		if unicode.IsControl(r) {
			return false
		}
	}
	return true
}

func (c *collection) client() *api.CollectionClient {
	q, epsilon := c.question, c.protocol.Parameters().Epsilon
	out := &api.CollectionClient{Collection: q.Name, Kind: q.Kind, Domain: q.Domain, Low: q.Low, High: q.High, Mechanism: q.Mechanism,
		Epsilon: q.Epsilon, Rounds: q.Rounds,
		EpsilonLifetime: api.Decimal((epsilon * mechanisms.PicoEpsilon(q.Rounds)).String()),
		Constants:       map[string]string{}, Procedure: c.protocol.Procedure()}
	for _, constant := range c.protocol.Constants() {
		out.Constants[constant.Name] = constant.Value.RatString()
	}
	for _, e := range c.protocol.Examples() {
		out.Examples = append(out.Examples, api.ClientExample{Truth: e.Truth, Draws: e.Draws, Report: e.Report})
	}
	return out
}
