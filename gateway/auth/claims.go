package auth

import (
	"encoding/base64"
	"errors"
	"strings"

	"github.com/golang-jwt/jwt/v5"

	"noisegate.example/internal/strictjson"
)

// find looks a claim up by its name, or by a path of names with dots when there is none of that name.
func find(claims jwt.MapClaims, path string) any {
	if value, ok := claims[path]; ok {
		return value
	}
	var value any = map[string]any(claims)
	for name := range strings.SplitSeq(path, ".") {
		object, ok := value.(map[string]any)
		if !ok {
			return nil
		}
		value = object[name]
	}
	return value
}

// names reads a list of strings; one string is a list of words, as in the scope claim of OAuth. An absent claim is empty.
func names(claim any) ([]string, error) {
	switch claim := claim.(type) {
	case nil:
		return nil, nil
	case string:
		return strings.Fields(claim), nil
	case []any:
		list := make([]string, 0, len(claim))
		for _, item := range claim {
			name, ok := item.(string)
			if !ok {
				return nil, errors.New("auth: a list of names holds something else")
			}
			list = append(list, name)
		}
		return list, nil
	default:
		return nil, errors.New("auth: a claim is neither a name nor a list of names")
	}
}

// checkStrictly refuses what the JWT library overlooks: extensions that the token declares critical (RFC 7515, section
// 4.1.11), tokens of another type (RFC 8725, section 3.11), and JSON that two readers could understand differently. Keys that
// a token brings along (jwk, jku, x5u, x5c) are never looked at.
func checkStrictly(token *jwt.Token) error {
	if _, ok := token.Header["crit"]; ok {
		return errors.New("auth: the token declares critical extensions")
	}
	if kind, ok := token.Header["typ"]; ok {
		name, _ := kind.(string)
		if !strings.EqualFold(name, "JWT") && !strings.EqualFold(name, "at+jwt") {
			return errors.New("auth: the token is of another type")
		}
	}
	parts := strings.Split(token.Raw, ".")
	for _, part := range parts[:2] {
		text, err := base64.RawURLEncoding.DecodeString(part)
		if err != nil {
			return err
		}
		if err := strictjson.Check(text); err != nil {
			return err
		}
	}
	return nil
}
