package auth

import (
	"time"

	"github.com/golang-jwt/jwt/v5"
)

// DevToken describes a token that Noisegate signs itself, for development with an hs256_file and for the demo.
type DevToken struct {
	Secret   []byte // as ReadSecret gives it
	Issuer   string
	Audience string
	Subject  string
	Roles    []Role
	Groups   []string
	Issued   time.Time
	Lifetime time.Duration
}

// Sign gives the token's text.
func (d DevToken) Sign() (string, error) {
	return jwt.NewWithClaims(jwt.SigningMethodHS256, jwt.MapClaims{
		"iss": d.Issuer, "aud": d.Audience, "sub": d.Subject, "roles": d.Roles, "groups": d.Groups,
		"iat": jwt.NewNumericDate(d.Issued), "nbf": jwt.NewNumericDate(d.Issued), "exp": jwt.NewNumericDate(d.Issued.Add(d.Lifetime)),
	}).SignedString(d.Secret)
}
