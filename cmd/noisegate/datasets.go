package main

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strings"

	"noisegate.example/api"
	"noisegate.example/catalog"
)

type datasetsCommand struct {
	Dataset string `arg:"" optional:"" help:"The dataset; all when absent."`
	Table   string `arg:"" optional:"" help:"One table of it: name or schema.name."`
	Column  string `arg:"" optional:"" help:"One column of it, with all its public keys."`
	Named   string `name:"dataset" hidden:"" help:"The dataset, as query takes it."`
	gatewayFlags
}

// run shows what may be asked about, which is all public: an analyst's first question, as no query can read the catalogue.
func (c *datasetsCommand) ask(ctx context.Context, a *app, client *api.Client) error {
	if c.Named != "" && c.Dataset != "" { // the first argument is a table then
		c.Table, c.Column = c.Dataset, c.Table
	}
	c.Dataset = cmp.Or(c.Named, c.Dataset)
	list := &api.DatasetList{}
	var err error
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
	if c.Table != "" {
		if list.Datasets[0].Tables, err = c.only(list.Datasets[0].Tables); err != nil {
			return usage(err)
		}
	}
	if c.JSON {
		return printJSON(a.Out, list)
	}
	for _, d := range list.Datasets {
		for _, t := range d.Tables {
			if c.Column != "" {
				a.showColumn(t.Columns[0])
			} else {
				a.showTable(d.Name, t)
			}
		}
	}
	return nil
}

// only keeps the table that is asked for, and of it the column.
func (c *datasetsCommand) only(tables []api.Table) ([]api.Table, error) {
	i := slices.IndexFunc(tables, func(t api.Table) bool { return c.Table == tableNameOf(t) || c.Table == t.Schema+"."+t.Name })
	if i < 0 {
		return nil, fmt.Errorf("there is no table %s in %s; see noisegate datasets %s", c.Table, c.Dataset, c.Dataset)
	}
	table := tables[i]
	if c.Column != "" {
		j := slices.IndexFunc(table.Columns, func(k api.TableColumn) bool { return k.Name == c.Column })
		if j < 0 {
			return nil, fmt.Errorf("table %s has no column %s that analysts see", c.Table, c.Column)
		}
		table.Columns = table.Columns[j : j+1]
	}
	return []api.Table{table}, nil
}

// showColumn prints a column with all its public keys, a line each: what a condition may compare it with.
func (a *app) showColumn(c api.TableColumn) {
	line := c.Name + " " + c.Type
	if bounds := boundsText(c); bounds != "" {
		line += ", bounds " + bounds
	}
	if c.Keys == "public" {
		line += fmt.Sprintf(", %d public keys", len(c.Domain))
	} else if keys := keysText(c); keys != "" {
		line += ", keys " + keys
	}
	fmt.Fprintln(a.Out, line)
	for _, value := range c.Domain {
		fmt.Fprintln(a.Out, keyText(value))
	}
}

// tableNameOf is a table's name, without the schema where that is public.
func tableNameOf(t api.Table) string {
	if t.Schema != "public" {
		return t.Schema + "." + t.Name
	}
	return t.Name
}

func boundsText(c api.TableColumn) string {
	if c.Bounds == nil {
		return ""
	}
	bounds := c.Bounds.Lo + " to " + c.Bounds.Hi
	if c.Bounds.Step != "" && c.Bounds.Step != "1" {
		bounds += " by " + c.Bounds.Step
	}
	return bounds
}

func keyText(value *string) string {
	if value == nil {
		return "NULL"
	}
	return *value
}

func (a *app) showTable(dataset string, described api.Table) {
	name := tableNameOf(described)
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
		t.row(c.Name, c.Type, boundsText(c), keysText(c))
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
	case c.Keys == "private":
		return "private: needs a delta"
	case c.Keys != "public":
		return c.Keys
	case len(c.Domain) > few || len(c.Domain) == 0:
		return fmt.Sprintf("public: %d values", len(c.Domain))
	}
	values := make([]string, len(c.Domain))
	for i, value := range c.Domain {
		values[i] = keyText(value)
	}
	return "public: " + strings.Join(values, ", ")
}
