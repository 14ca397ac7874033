package main

import (
	"cmp"
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"noisegate.example/catalog/draft"
)

type policyImportCommand struct {
	System  draft.System `arg:"" enum:"smartnoise,lomas" help:"Whose metadata it is: smartnoise or lomas."`
	File    string       `arg:"" type:"existingfile" help:"The YAML file."`
	Dataset string       `help:"The dataset; the file's name when absent." placeholder:"NAME"`
	Schema  string       `help:"The schema of the tables in PostgreSQL; as the file says when absent, public for lomas." placeholder:"NAME"`
	Table   string       `help:"With lomas: the table, which its metadata do not name; the dataset's name when absent." placeholder:"NAME"`
}

// run drafts a policy from the metadata of another system. It reads no database.
func (c *policyImportCommand) run(_ context.Context, a *app) error {
	if c.Table != "" && c.System != draft.Lomas {
		return usage(fmt.Errorf("--table goes with lomas: the metadata of %s name their tables", c.System))
	}
	text, err := os.ReadFile(c.File)
	if err != nil {
		return usage(err)
	}
	name := filepath.Base(c.File)
	dataset := cmp.Or(c.Dataset, datasetNameOf(strings.TrimSuffix(name, filepath.Ext(name))))
	p := draft.ImportParameters{System: c.System, Dataset: dataset, Schema: c.Schema}
	if c.System == draft.Lomas {
		p.Table = cmp.Or(c.Table, dataset)
	}
	policy, problems := draft.Import(string(text), p)
	if len(problems) > 0 {
		return policyError{c.File, problems}
	}
	a.showDraft(policy)
	return nil
}
