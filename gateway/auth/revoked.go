package auth

import (
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"strconv"
	"strings"
	"unicode"

	"github.com/golang-jwt/jwt/v5"
)

// revoked are tokens that are not believed any more, though their keys are. The zero value is none.
type revoked struct {
	subjects, tokens, keys map[string]bool
}

var errRevoked = errors.New("auth: the token is revoked")

// readRevoked reads a list of what is revoked; none without a file.
func readRevoked(path string, oneKey bool) (*revoked, error) {
	if path == "" {
		return &revoked{}, nil
	}
	text, err := os.ReadFile(path)
	if err != nil {
		return nil, fmt.Errorf("auth: the revoked tokens: %w", err)
	}
	r, err := parseRevoked(string(text))
	if err == nil && oneKey && len(r.keys) > 0 {
		err = errors.New("kid: an hs256_file has one key, without a name: write another key into it")
	}
	if err != nil {
		return nil, fmt.Errorf("auth: the revoked tokens in %s: %w", path, err)
	}
	return r, nil
}

// CheckRevoked reads a list of what is revoked, as [New] does; its error is why a gateway would refuse it. "" is no list.
func CheckRevoked(path string, keys Keys) error {
	_, err := readRevoked(path, keys.HS256File != "")
	return err
}

// parseRevoked reads one line after another: "subject", "jti" or "kid", a space, and the subject, token or key. Empty lines and those that
// begin with # say nothing. What it does not know is an error, and so is a last line that does not end, to which somebody may have appended
// another: a misspelt line would let a token in.
func parseRevoked(text string) (*revoked, error) {
	r := &revoked{subjects: map[string]bool{}, tokens: map[string]bool{}, keys: map[string]bool{}}
	number := 0
	for line := range strings.Lines(text) {
		number++
		if !strings.HasSuffix(line, "\n") {
			return nil, fmt.Errorf("line %d: it has no end: write a line break after it", number)
		}
		line = strings.TrimSpace(line)
		if line == "" || strings.HasPrefix(line, "#") {
			continue
		}
		kind, name, _ := strings.Cut(line, " ")
		name = strings.TrimSpace(name)
		if err := r.add(kind, name); err != nil {
			return nil, fmt.Errorf("line %d: %w", number, err)
		}
	}
	return r, nil
}

// add takes a line.
func (r *revoked) add(kind, name string) error {
	named := map[string]map[string]bool{"subject": r.subjects, "jti": r.tokens, "kid": r.keys}[kind]
	switch {
	case named == nil || name == "":
		return errors.New("want subject, jti or kid, a space, and its name")
	case kind == "subject" && !ValidName(name):
		return errors.New("no token has this subject")
	case strings.Contains(name, " #"):
		return errors.New("a note needs a line of its own, which begins with #")
	case kind != "subject" && spaced(name):
		return fmt.Errorf("the name of a %s has no white space", kind)
	}
	named[name] = true
	return nil
}

// refuse says whether a genuine token is revoked. One whose key or jti no line can name, or that names no key, may be of any.
func (r *revoked) refuse(subject string, token *jwt.Token, claims jwt.MapClaims) error {
	key, named := token.Header["kid"].(string)
	named = named && !spaced(key)
	id, told := idOf(claims["jti"])
	if r.subjects[subject] || r.tokens[id] || !told && len(r.tokens) > 0 || r.keys[key] || !named && len(r.keys) > 0 {
		return errRevoked
	}
	return nil
}

// idOf is a jti as a line names it; "" for none. told is false where no line can: of a number there may be several ways to write it.
func idOf(claim any) (id string, told bool) {
	switch claim := claim.(type) {
	case nil:
		return "", true
	case string:
		return claim, !spaced(claim)
	case json.Number:
		n, err := claim.Int64()
		return claim.String(), err == nil && strconv.FormatInt(n, 10) == claim.String() && -maxWhole <= n && n <= maxWhole
	default:
		return "", false
	}
}

// maxWhole is up to where every reader of JSON shows whole numbers as they are (RFC 8259, section 6).
const maxWhole = 1<<53 - 1

func spaced(name string) bool { return strings.ContainsFunc(name, unicode.IsSpace) }

// String says how much is revoked.
func (r *revoked) String() string {
	return fmt.Sprintf("%d subjects, %d tokens, %d keys", len(r.subjects), len(r.tokens), len(r.keys))
}
