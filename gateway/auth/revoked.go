package auth

import (
	"errors"
	"fmt"
	"os"
	"strings"

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

// parseRevoked reads one line after another: "subject", "jti" or "kid", a space, and whose tokens, which token, or of which key. Empty
// lines and those that begin with # say nothing. What it does not know is an error: a misspelt line would let a token in.
func parseRevoked(text string) (*revoked, error) {
	r := &revoked{subjects: map[string]bool{}, tokens: map[string]bool{}, keys: map[string]bool{}}
	number := 0
	for line := range strings.Lines(text) {
		number++
		line = strings.TrimSpace(line)
		if line == "" || strings.HasPrefix(line, "#") {
			continue
		}
		kind, name, _ := strings.Cut(line, " ")
		if name = strings.TrimSpace(name); name == "" {
			return nil, fmt.Errorf("line %d: want subject, jti or kid, a space, and its name", number)
		}
		switch kind {
		case "subject":
			if !ValidName(name) {
				return nil, fmt.Errorf("line %d: no token has this subject", number)
			}
			r.subjects[name] = true
		case "jti":
			r.tokens[name] = true
		case "kid":
			r.keys[name] = true
		default:
			return nil, fmt.Errorf("line %d: want subject, jti or kid, a space, and its name", number)
		}
	}
	return r, nil
}

// refuse says whether a genuine token is revoked. One without a key's name may be of a key that is.
func (r *revoked) refuse(subject string, token *jwt.Token, claims jwt.MapClaims) error {
	key, named := token.Header["kid"].(string)
	id, _ := claims["jti"].(string)
	if r.subjects[subject] || id != "" && r.tokens[id] || r.keys[key] || !named && len(r.keys) > 0 {
		return errRevoked
	}
	return nil
}
