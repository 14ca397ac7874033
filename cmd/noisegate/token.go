package main

import (
	"context"
	"errors"
	"fmt"
	"time"

	"noisegate.example/gateway/auth"
)

// maxTokenLifetime bounds tokens for development: what is forgotten somewhere should stop working.
const maxTokenLifetime = 90 * 24 * time.Hour

// tokenCommand signs with a key for development. In production an identity provider makes tokens, and this machine has no
// key that could.
type tokenCommand struct {
	Sub      string        `required:"" help:"Who the token is for."`
	Role     []string      `required:"" enum:"analyst,steward,ml,collector" help:"Role: analyst, steward, ml or collector; may be repeated."`
	Group    []string      `help:"Group; may be repeated."`
	Lifetime time.Duration `default:"12h" help:"How long the token is valid."`
	configFlag
}

func (c *tokenCommand) run(_ context.Context, a *app) error {
	config, err := c.load(a)
	if err != nil {
		return err
	}
	keyFile := config.Auth.Keys.HS256File
	if keyFile == "" {
		return usage(errors.New("tokens come from your identity provider: this configuration has no auth.keys.hs256_file"))
	}
	if c.Lifetime <= 0 || c.Lifetime > maxTokenLifetime {
		return usage(fmt.Errorf("--lifetime must be above 0 and at most %s", maxTokenLifetime))
	}
	secret, err := auth.ReadSecret(keyFile)
	if err != nil {
		return usage(err)
	}
	roles := make([]auth.Role, 0, len(c.Role))
	for _, role := range c.Role {
		roles = append(roles, auth.Role(role))
	}
	token, err := auth.DevToken{Secret: secret, Issuer: config.Auth.Issuer, Audience: config.Auth.Audience,
		Subject: c.Sub, Roles: roles, Groups: c.Group, Issued: a.now(), Lifetime: c.Lifetime}.Sign()
	if err != nil {
		return err
	}
	fmt.Fprintln(a.Out, token)
	return nil
}
