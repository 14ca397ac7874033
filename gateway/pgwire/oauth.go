package pgwire

import (
	"bytes"
	"context"
	"encoding/json"
	"strings"

	"github.com/jackc/pgx/v5/pgproto3"

	"noisegate.example/gateway/auth"
	"noisegate.example/internal/fault"
)

// authSetting, among the options of a start-up packet, says how a client shows its token: as a password, or by OAUTHBEARER (RFC 7628), with
// which libpq 18 and others get it from the identity provider themselves.
const authSetting = "noisegate.auth"

const bearerMechanism = "OAUTHBEARER"

// method is how a client wants to show its token, and takes that out of its parameters: no session has such a setting.
func (h *hello) method(issuer string) (oauth bool, refused *refusal) {
	var rest []parameter
	for _, p := range h.parameters {
		if p.name != authSetting {
			rest = append(rest, p)
			continue
		}
		if p.value != "oauth" && p.value != "password" {
			return false, fatalf(stateValue, "%s is oauth or password", authSetting)
		}
		oauth = p.value == "oauth"
	}
	if oauth && issuer == "" {
		return false, fatalf(stateUnsupported, "there is no identity provider to name")
	}
	h.parameters = rest
	return oauth, nil
}

// bearer reads the first message of OAUTHBEARER. It is a header that asks for no channel binding and no other identity, and pairs that
// include the token. A client that has none yet sends an empty one.
func bearer(message []byte) (token string, ok bool) {
	head, rest, ok := bytes.Cut(message, []byte{1})
	if !ok || string(head) != "n,," && string(head) != "y,," {
		return "", false
	}
	found := false
	for {
		pair, after, ok := bytes.Cut(rest, []byte{1})
		if !ok {
			return "", false
		}
		if len(pair) == 0 {
			if !found || len(after) > 0 {
				return "", false
			}
			return token, true
		}
		rest = after
		name, value, ok := bytes.Cut(pair, []byte{'='})
		if !ok || string(name) != "auth" {
			continue // host and port, which some clients say
		}
		if found {
			return "", false
		}
		found = true
		scheme, credentials, _ := strings.Cut(string(value), " ")
		if len(value) > 0 && !strings.EqualFold(scheme, "Bearer") {
			return "", false
		}
		token = strings.TrimLeft(credentials, " ")
	}
}

// bear takes a token by OAUTHBEARER. A client without a good one is told where tokens come from, and then refused: it connects again.
func (s *Server) bear(ctx context.Context, backend *pgproto3.Backend, user string) (token string, who auth.Principal, refused *refusal) {
	receive := func(kind uint32, ask pgproto3.BackendMessage) (pgproto3.FrontendMessage, *refusal, bool) {
		backend.Send(ask)
		if backend.Flush() != nil || backend.SetAuthType(kind) != nil {
			return nil, nil, false
		}
		message, err := backend.Receive()
		return message, lost(err), err == nil
	}
	message, refused, ok := receive(pgproto3.AuthTypeSASL, &pgproto3.AuthenticationSASL{AuthMechanisms: []string{bearerMechanism}})
	if !ok {
		return "", who, refused
	}
	first, isFirst := message.(*pgproto3.SASLInitialResponse)
	if !isFirst || first.AuthMechanism != bearerMechanism {
		return "", who, violation("a first message of " + bearerMechanism + " was expected")
	}
	if token, ok = bearer(first.Data); !ok {
		return "", who, violation("malformed " + bearerMechanism + " message")
	}
	who, err := s.identify(ctx, token, user)
	if err == nil {
		return token, who, nil
	}
	provider, _ := json.Marshal(map[string]string{ // texts alone
		"status": "invalid_token", "openid-configuration": strings.TrimSuffix(s.config.Issuer, "/") + "/.well-known/openid-configuration"})
	if _, refused, ok = receive(pgproto3.AuthTypeSASLContinue, &pgproto3.AuthenticationSASLContinue{Data: provider}); !ok {
		return "", who, refused
	}
	return "", who, wrongBearer(user, err)
}

// password takes a token as a password in clear, which never leaves this machine but inside TLS.
func (s *Server) password(ctx context.Context, backend *pgproto3.Backend, user string) (
	token string, who auth.Principal, refused *refusal,
) {
	backend.Send(&pgproto3.AuthenticationCleartextPassword{})
	if backend.Flush() != nil {
		return "", who, nil
	}
	message, err := backend.Receive()
	if err != nil {
		return "", who, lost(err)
	}
	password, ok := message.(*pgproto3.PasswordMessage)
	if !ok {
		return "", who, violation("a password was expected")
	}
	if who, err = s.identify(ctx, password.Password, user); err != nil {
		return "", who, wrongPassword(user, err)
	}
	return password.Password, who, nil
}

// identify is who shows a token: an analyst, by the name that the connection has.
func (s *Server) identify(ctx context.Context, token, user string) (auth.Principal, error) {
	who, err := s.config.Verifier.Verify(ctx, token)
	if err == nil && (who.Subject != user || !who.Has(auth.Analyst)) {
		err = fault.AuthInvalid(nil)
	}
	return who, err
}
