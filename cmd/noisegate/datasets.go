package main

import (
	"context"
	"fmt"
	"strings"

	"noisegate/api"
	"noisegate/catalog"
)

type datasetsCommand struct {
	Dataset string `arg:"" optional:"" help:"The dataset; all when absent."`
	gatewayFlags
}

// run shows what may be asked about, which is all public: an analyst's first question, as no query can read the catalogue.
func (c *datasetsCommand) run(ctx context.Context, a *app) error {
	client, err := c.client(a)
	if err != nil {
		return err
	}
	list := &api.DatasetList{}
	if c.Dataset == "" {
		list, err = client.Datasets(ctx)
	} else {
		var one *api.Dataset
		if one, err = client.Dataset(ctx, c.Dataset); err == nil {
			list.Datasets = []api.Dataset{*one}
		}
	}
	if err != nil {
		return a.refused(c.JSON, "", err)
	}
	if c.JSON {
		return printJSON(a.Out, list)
	}
	for _, d := range list.Datasets {
		for _, t := range d.Tables {
			a.showTable(d.Name, t)
		}
	}
	return nil
}

func (a *app) showTable(dataset string, described api.Table) {
	name := described.Name
	if described.Schema != "public" {
		name = described.Schema + "." + name
	}
	fmt.Fprintf(a.Out, "%s, %s: %s\n", dataset, name, unitText(described))
	if noise := catalog.NoiseText(described.MaxRows, described.MaxGroups, described.MaxRowsTotal); noise != "" && !described.Public {
		fmt.Fprintf(a.Out, "  %s\n", noise)
	}
	if len(described.NotCovered) > 0 {
		fmt.Fprintf(a.Out, "  not protected in these rows: %s\n", strings.Join(described.NotCovered, ", "))
	}
	t := &table{}
	t.header("column", "type", "bounds", "keys")
	for _, c := range described.Columns {
		bounds := ""
		if c.Bounds != nil {
			bounds = c.Bounds.Lo + " to " + c.Bounds.Hi
			if c.Bounds.Step != "" && c.Bounds.Step != "1" {
				bounds += " by " + c.Bounds.Step
			}
		}
		t.row(c.Name, c.Type, bounds, keysText(c))
	}
	t.write(a.Out)
}

// unitText says what one person can add to answers about a table.
func unitText(t api.Table) string {
	switch {
	case t.Public || t.Unit == nil:
		return "public, exact and free"
	case t.MaxRows == 1 && t.MaxGroups == 1:
		return "a row is one " + t.Unit.Column
	case t.MaxRows == 0 || t.MaxGroups == 0:
		return "without max_rows and max_groups, so that counts and sums are refused"
	}
	unit, total := "one "+t.Unit.Column, ""
	if t.Unit.To != "" { // a path: its column is a foreign key, not the unit
		unit = "one unit of " + t.Unit.To
	}
	if t.MaxRowsTotal > 0 {
		total = fmt.Sprintf(", %d rows in all", t.MaxRowsTotal)
	}
	return fmt.Sprintf("at most %d rows of %s in a group, in at most %d groups%s", t.MaxRows, unit, t.MaxGroups, total)
}

// keysText says what GROUP BY of a column shows.
func keysText(c api.TableColumn) string {
	const few = 8
	switch {
	case c.Keys != "public":
		return c.Keys
	case len(c.Domain) > few || len(c.Domain) == 0:
		return fmt.Sprintf("public: %d values", len(c.Domain))
	}
	values := make([]string, len(c.Domain))
	for i, value := range c.Domain {
		values[i] = "NULL"
		if value != nil {
			values[i] = *value
		}
	}
	return "public: " + strings.Join(values, ", ")
}
