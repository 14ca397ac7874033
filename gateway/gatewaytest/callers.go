package gatewaytest

import (
	"context"
	"errors"
	"fmt"
	"os"
	"strings"
	"sync"
	"testing"

	"noisegate.example/gateway/auth"
	"noisegate.example/internal/fault"
	"noisegate.example/internal/pgserver"
)

// Main runs the tests of a package, whose control databases are all on one server of [Server], and gives the exit code.
func Main(m *testing.M, server **pgserver.Server) (status int) {
	started, err := Server(context.Background())
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	*server = started
	status = m.Run()
	if err := started.Stop(); err != nil {
		fmt.Fprintln(os.Stderr, err)
		status = 1
	}
	return status
}

// Names is a verifier whose tokens say who one is, "ana:analyst,steward", until they are withdrawn. It panics for the subject panic. The
// zero value is ready, and safe for concurrent use.
type Names struct {
	mu        sync.Mutex
	withdrawn map[string]error
}

// Verify gives the principal that a token names; its errors are auth/*.
func (v *Names) Verify(_ context.Context, token string) (auth.Principal, error) {
	v.mu.Lock()
	defer v.mu.Unlock()
	if err := v.withdrawn[token]; err != nil {
		return auth.Principal{}, err
	}
	subject, roles, ok := strings.Cut(token, ":")
	if !ok {
		return auth.Principal{}, fault.AuthInvalid(errors.New("no colon"))
	}
	if subject == "panic" {
		panic("the text of a panic")
	}
	p, ok := auth.NewPrincipal(subject, strings.Split(roles, ","), nil)
	if !ok {
		return auth.Principal{}, fault.AuthInvalid(errors.New("no principal"))
	}
	return p, nil
}

// Withdraw makes an error of a token.
func (v *Names) Withdraw(token string, why error) {
	v.mu.Lock()
	defer v.mu.Unlock()
	if v.withdrawn == nil {
		v.withdrawn = map[string]error{}
	}
	v.withdrawn[token] = why
}
