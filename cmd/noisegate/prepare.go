package main

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"noisegate.example/catalog"
	"noisegate.example/cmd/noisegate/internal/server"
	"noisegate.example/gateway"
	"noisegate.example/gateway/pgexec"
)

// prepareCommand makes copies of tables, as the policy in force asks for them.
type prepareCommand struct {
	Dataset string `required:"" help:"The dataset."`
	Table   string `help:"The table, as table or schema.table; all that the policy has prepare for when absent."`
	Check   bool   `xor:"do" help:"Make nothing: say what would be made, and fail unless each copy is there and what the policy asks for, and no right for another one is missing. Space, locks and rows are not looked at."`
	Status  bool   `xor:"do" help:"Make nothing: say which versions there are."`
	Rows    bool   `help:"With --check: read rows, too, and fail where a copy that rows are appended to is not what --full would make."`
	Full    bool   `help:"Make each copy anew, also where the policy has new rows appended: what was changed or deleted in the table is taken up so alone."`
	Drop    bool   `xor:"do" help:"Remove all copies, also those that the policy does not ask for any more."`
	configFlag
}

func (c *prepareCommand) run(ctx context.Context, a *app) error {
	config, err := c.load(a)
	if err != nil {
		return err
	}
	dataset, ok := config.Datasets[c.Dataset]
	switch {
	case !ok:
		return usage(fmt.Errorf("the configuration has no dataset %s", c.Dataset))
	case dataset.PrepareDSN.IsZero():
		return usage(fmt.Errorf("datasets.%s.prepare_dsn is missing: the connection string of the role noisegate_prepare", c.Dataset))
	}
	role, err := server.Preparer(config, c.Dataset)
	if err != nil {
		return usage(err)
	}
	control, err := server.OpenPool(ctx, config.Control.DSN)
	if err != nil {
		return err
	}
	defer control.Close()
	inForce := func() (*catalog.Snapshot, error) {
		revision, err := catalog.NewStore(control, nil).Load(ctx, c.Dataset)
		if err != nil {
			return nil, err
		}
		return revision.Snapshot, nil
	}
	on, err := inForce()
	if err != nil {
		return err
	}
	switch {
	case c.Rows && !c.Check, c.Full && (c.Check || c.Status || c.Drop):
		return usage(errors.New("--rows is for --check, and --full for a run"))
	case c.Check:
		return c.check(ctx, a, role, on)
	case c.Status:
		return c.status(ctx, a, role, on)
	case c.Drop:
		return c.drop(ctx, a, role, on)
	default:
		return c.prepare(ctx, a, role, on, inForce)
	}
}

// prepare makes a version of each table that a policy asks for, by the policy that is in force when its turn comes.
func (c *prepareCommand) prepare(ctx context.Context, a *app, role gateway.Preparer, on *catalog.Snapshot,
	inForce func() (*catalog.Snapshot, error)) error {
	tables, err := c.wanted(on)
	if err != nil {
		return err
	}
	var failed error // of one table: the others are prepared all the same
	for _, t := range tables {
		if ctx.Err() != nil {
			return errors.Join(failed, ctx.Err())
		}
		name := catalog.TableName{Schema: t.Schema, Name: t.Name}
		begun := a.now()
		version, err := gateway.PrepareInForce(ctx, role, name.String(), c.Full, inForce, nil)
		if version != nil {
			fmt.Fprintf(a.Out, "%s: version %d as of %s serves, made in %s\n", version.Table, version.Number,
				version.AsOf.UTC().Format(time.RFC3339), a.now().Sub(begun).Round(time.Second))
		}
		if err != nil {
			failed = errors.Join(failed, fmt.Errorf("%s: %w", name, err))
		}
	}
	return failed
}

// states are those of the tables that the command line names, of all where it names none.
func (c *prepareCommand) states(ctx context.Context, role pgexec.PrepareConfig, on *catalog.Snapshot) ([]pgexec.Prepared, error) {
	all, err := role.State(ctx, on)
	if err != nil {
		return nil, err
	}
	all = slices.DeleteFunc(all, func(p pgexec.Prepared) bool { return !c.names(p.Table) })
	if len(all) == 0 && c.Table != "" {
		return nil, usage(fmt.Errorf("the policy in force has no prepare for a table %s, and there is no copy of it", c.Table))
	}
	return all, nil
}

// check says what a run would do.
func (c *prepareCommand) check(ctx context.Context, a *app, role pgexec.PrepareConfig, on *catalog.Snapshot) error {
	tables, err := c.wanted(on)
	if err != nil {
		return err
	}
	states, err := c.states(ctx, role, on)
	if err != nil {
		return err
	}
	var failed error
	for _, t := range tables {
		name := catalog.TableName{Schema: t.Schema, Name: t.Name}
		columns := "no column"
		for i, column := range on.CopyOf(t, catalog.Version{}).Copied() {
			if i == 0 {
				columns = "the columns " + column.Name
			} else {
				columns += ", " + column.Name
			}
		}
		state := states[slices.IndexFunc(states, func(p pgexec.Prepared) bool { return p.Table == name })]
		fmt.Fprintf(a.Out, "%s: a copy keeps at most %d rows of each unit (%s), and %s\n", name, t.Prepare, t.Unit.Of, columns)
		switch {
		case state.Problem != nil:
			failed = errors.Join(failed, fmt.Errorf("%s: a run would fail: %w", name, state.Problem))
		case len(state.Versions) == 0:
			failed = errors.Join(failed, fmt.Errorf("%s: there is no copy yet: run noisegate prepare", name))
		case state.Serving() == nil:
			failed = errors.Join(failed, fmt.Errorf("%s: %s, is not what the policy asks for today: run noisegate prepare", name,
				versionLine(a, state.Versions[0])))
		default:
			fmt.Fprintf(a.Out, "  %s\n", versionLine(a, *state.Serving()))
			if c.Rows {
				if err := role.Compare(ctx, on, t); err != nil {
					failed = errors.Join(failed, fmt.Errorf("%s: %w", name, err))
				}
			}
		}
	}
	return failed
}

// status says which versions there are.
func (c *prepareCommand) status(ctx context.Context, a *app, role pgexec.PrepareConfig, on *catalog.Snapshot) error {
	states, err := c.states(ctx, role, on)
	if err != nil {
		return err
	}
	for _, p := range states {
		switch {
		case len(p.Versions) == 0:
			fmt.Fprintf(a.Out, "%s: no copy\n", p.Table)
		case !p.Wanted:
			fmt.Fprintf(a.Out, "%s: the policy asks for no copy; --drop removes it\n", p.Table)
		case p.Serving() == nil:
			fmt.Fprintf(a.Out, "%s: the policy asks for another copy: prepare it\n", p.Table)
		default:
			fmt.Fprintf(a.Out, "%s: version %d serves\n", p.Table, p.Serving().Number)
		}
		for _, v := range p.Versions {
			fmt.Fprintf(a.Out, "  %s\n", versionLine(a, v))
		}
	}
	return nil
}

// versionLine is a version and its age.
func versionLine(a *app, v pgexec.Held) string {
	return fmt.Sprintf("version %d as of %s, %s old", v.Number, v.AsOf.UTC().Format(time.RFC3339), a.now().Sub(v.AsOf).Round(time.Minute))
}

// drop removes copies.
func (c *prepareCommand) drop(ctx context.Context, a *app, role pgexec.PrepareConfig, on *catalog.Snapshot) error {
	states, err := c.states(ctx, role, on)
	if err != nil {
		return err
	}
	var failed error
	for _, p := range states {
		if len(p.Versions) == 0 {
			continue
		}
		if err := role.Drop(ctx, on.Dataset, p.Table); err != nil {
			failed = errors.Join(failed, err)
			continue
		}
		fmt.Fprintf(a.Out, "%s: no copy is left\n", p.Table)
	}
	return errors.Join(failed, role.Drop(ctx, on.Dataset)) // of an earlier run that was killed, numbers may be left
}

// names reports whether the command line names a table, or none.
func (c *prepareCommand) names(t catalog.TableName) bool { return c.Table == "" || t.Is(c.Table) }

// wanted are the tables to be prepared.
func (c *prepareCommand) wanted(on *catalog.Snapshot) ([]*catalog.Table, error) {
	all := on.Prepared(c.Table)
	if len(all) == 0 && c.Table != "" {
		return nil, usage(fmt.Errorf("the policy in force has no prepare for a table %s", c.Table))
	}
	if len(all) == 0 {
		return nil, usage(errors.New("the policy in force has prepare for no table"))
	}
	return all, nil
}
