package main

import (
	"context"
	"errors"
	"fmt"
	"regexp"
	"strings"

	"github.com/jackc/pgx/v5/pgxpool"

	"noisegate.example/catalog"
	"noisegate.example/catalog/draft"
)

type policyInitCommand struct {
	DSN     string `name:"dsn" help:"The database, without a password: that is PGPASSWORD or PGPASSFILE." placeholder:"DSN"`
	Dataset string `help:"The dataset; the database's name when absent." placeholder:"NAME"`
	Unit    string `help:"The column that tells one privacy unit, usually a person." placeholder:"TABLE.COLUMN"`
}

// run drafts a policy from what the schema says. It reads the catalog of the database, and no row.
func (c *policyInitCommand) run(ctx context.Context, a *app) error {
	config, err := pgxpool.ParseConfig(c.DSN)
	if err != nil {
		return usage(errors.New("--dsn is no connection string")) // the cause may quote a password
	}
	if strings.Contains(c.DSN, "password=") || hasPassword.MatchString(c.DSN) {
		return usage(errors.New("--dsn holds a password, which other users of this machine can read: set PGPASSWORD or PGPASSFILE"))
	}
	dataset := c.Dataset
	if dataset == "" {
		dataset = datasetNameOf(config.ConnConfig.Database)
	}
	pool, err := pgxpool.NewWithConfig(ctx, config)
	if err != nil {
		return err
	}
	defer pool.Close()
	schema, err := catalog.Inspect(ctx, pool, nil)
	if err != nil {
		return err
	}
	unit, err := unitOf(schema, c.Unit)
	if err != nil {
		return usage(err)
	}
	text, err := draft.FromSchema(schema, dataset, unit)
	if err != nil {
		return usage(err)
	}
	a.showDraft(text)
	return nil
}

// showDraft prints a draft, and what is left to do where it is not part of the file.
func (a *app) showDraft(text string) {
	fmt.Fprint(a.Out, text)
	fmt.Fprintf(a.Err, "noisegate: %d blanks (%s) are to be filled in; then noisegate policy check FILE\n", draft.Blanks(text), draft.Blank)
}

var (
	hasPassword  = regexp.MustCompile(`^[a-z]+://[^/@]*:[^/@]+@`)
	notInDataset = regexp.MustCompile(`[^a-z0-9_-]+`)
)

// datasetNameOf makes a dataset's name of a database's.
func datasetNameOf(database string) string {
	name := strings.Trim(notInDataset.ReplaceAllString(strings.ToLower(database), "_"), "_-0123456789")
	if name == "" {
		return "data"
	}
	return name[:min(len(name), 63)]
}

// unitOf is the unit that a text names. Without one there is a unit only if a single column can be one: a schema does not say which of
// several identifies people.
func unitOf(schema *catalog.Schema, text string) (draft.Unit, error) {
	if text != "" {
		unit, ok := draft.ParseUnit(text)
		if !ok {
			return draft.Unit{}, errors.New("--unit is table.column or schema.table.column")
		}
		return unit, nil
	}
	candidates := draft.Candidates(schema)
	switch len(candidates) {
	case 0:
		return draft.Unit{}, errors.New("no column is unique and never NULL: name the one that tells a person, --unit table.column")
	case 1:
		return candidates[0], nil
	}
	const most = 8
	var names []string
	for _, u := range candidates[:min(len(candidates), most)] {
		names = append(names, u.String())
	}
	return draft.Unit{}, fmt.Errorf("which column tells one person? --unit is one of these, say, or another column: %s",
		strings.Join(names, ", "))
}
