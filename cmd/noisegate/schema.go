package main

import (
	"context"
	"encoding/json"
	"fmt"

	"noisegate.example/catalog"
	"noisegate.example/cmd/noisegate/internal/config"
)

type schemaCommands struct {
	Policy schemaPolicyCommand `cmd:"" help:"Print the JSON Schema of policy files, for editors."`
	Config schemaConfigCommand `cmd:"" help:"Print the JSON Schema of the configuration file, for editors."`
}

type schemaPolicyCommand struct{}

func (schemaPolicyCommand) run(_ context.Context, a *app) error {
	_, err := a.Out.Write(catalog.JSONSchema())
	return err
}

type schemaConfigCommand struct{}

func (schemaConfigCommand) run(_ context.Context, a *app) error {
	encoded, err := json.MarshalIndent(config.Schema(), "", " ")
	if err != nil {
		return err
	}
	_, err = fmt.Fprintf(a.Out, "%s\n", encoded)
	return err
}
