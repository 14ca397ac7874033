package main

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"time"

	"noisegate.example/budget"
	"noisegate.example/budget/journal"
	"noisegate.example/budget/pgledger"
)

// byOperator is who these commands say did something: they connect to the control database, as the gateway does.
const byOperator = "operator"

type auditGatewaysCommands struct {
	List   auditGatewaysCommand `cmd:"" default:"1" help:"List the gateways that signed on and not off, and whether each has found its newest entries on the server that runs now."`
	Forget auditForgetCommand   `cmd:"" help:"Wait no more for a gateway that will not come back. End its process first."`
}

type auditGatewaysCommand struct {
	JSON bool `help:"Print JSON, for programs."`
	configFlag
}

// ledgerOf opens the ledger of a configuration.
func (f configFlag) ledger(ctx context.Context, a *app) (*pgledger.Ledger, error) {
	c, err := f.load(a)
	if err != nil {
		return nil, err
	}
	return pgledger.Open(ctx, c.Control.DSN.Reveal())
}

// shownGateway is a gateway, for people and as JSON.
type shownGateway struct {
	Name    string    `json:"name"`
	Started time.Time `json:"started"`
	Seen    time.Time `json:"seen"`
	Found   bool      `json:"found"` // its newest entries, on the server that runs now
	Heads   []string  `json:"heads"`
}

func (c *auditGatewaysCommand) run(ctx context.Context, a *app) error {
	ledger, err := c.ledger(ctx, a)
	if err != nil {
		return err
	}
	defer ledger.Close()
	all, err := ledger.Gateways(ctx)
	if err != nil {
		return err
	}
	shown := make([]shownGateway, len(all))
	for i, g := range all {
		shown[i] = shownGateway{g.Name, g.Started.UTC(), g.Seen.UTC(), g.Found, []string{}}
		for _, h := range g.Heads {
			shown[i].Heads = append(shown[i].Heads, fmt.Sprintf("%s %d", h.Dataset, h.Seq))
		}
	}
	if c.JSON {
		return printJSON(a.Out, shown)
	}
	t := &table{}
	t.header("gateway", "started", "seen", "newest entries")
	for _, g := range shown {
		found := "found"
		if !g.Found {
			found = "not found yet"
		}
		t.row(g.Name, g.Started.Format(time.DateTime), g.Seen.Format(time.DateTime), found)
	}
	t.write(a.Out)
	return nil
}

type auditForgetCommand struct {
	Name string `arg:"" help:"The gateway, as the list names it."`
	configFlag
}

func (c *auditForgetCommand) run(ctx context.Context, a *app) error {
	ledger, err := c.ledger(ctx, a)
	if err != nil {
		return err
	}
	defer ledger.Close()
	runs, err := ledger.Forget(ctx, byOperator, c.Name)
	if err == nil && runs == 0 {
		err = fmt.Errorf("no gateway is called %q: see noisegate audit gateways", c.Name)
	}
	if err == nil {
		fmt.Fprintf(a.Out, "%s is forgotten\n", c.Name)
	}
	return err
}

type auditResumeCommand struct {
	Dataset string `arg:"" help:"A dataset that is held: an entry of its ledger is missing, or may be."`
	Reason  string `required:"" help:"Why it may go on, for the ledger's journal."`
	Freeze  bool   `help:"Freeze the dataset's account too, until limits, freezes and policies that are lost are set again."`
	configFlag
}

func (c *auditResumeCommand) run(ctx context.Context, a *app) error {
	ledger, err := c.ledger(ctx, a)
	if err != nil {
		return err
	}
	defer ledger.Close()
	done, held, err := ledger.Resume(ctx, byOperator, budget.Resume{Dataset: c.Dataset, Reason: c.Reason, Freeze: c.Freeze})
	switch {
	case err != nil:
		return err
	case !held:
		fmt.Fprintf(a.Out, "%s is not held\n", c.Dataset)
	default:
		fmt.Fprintf(a.Out, "%s goes on; lost entries that gateways knew: %d\n", c.Dataset, len(done.Lost))
		newest := "no entry is left"
		if !done.Newest.IsZero() {
			newest = "the newest entry that is left is of " + done.Newest.Format(time.RFC3339)
		}
		fmt.Fprintf(a.Out, "%s: set again policies, limits, freezes and keys that changed since\n", newest)
		for _, plan := range done.Unpaid {
			fmt.Fprintf(a.Out, "plan %s was drawn from, and is in no ledger: lower the caps by what it cost\n", plan)
		}
		if done.Retires {
			fmt.Fprintln(a.Out, "not every gateway told which slots of plans it had drawn: what is left of plans is not drawn any more")
		}
	}
	return nil
}

type auditReconcileCommand struct {
	Receipts string `required:"" type:"path" placeholder:"DIR" help:"A directory with receipts, as answers carry them in Noisegate-Receipt: files of JSON, one after another."`
	Check    bool   `help:"Say what would be booked, and book nothing."`
	configFlag
}

// reconciled counts receipts by what became of them.
type reconciled struct {
	there, booked, free, unreadable int
	once                            map[budget.ReservationID]bool // what is, or would be, booked
}

func (c *auditReconcileCommand) run(ctx context.Context, a *app) error {
	loaded, err := c.load(a)
	if err != nil {
		return err
	}
	signer, err := loaded.Control.Signer()
	if err == nil && signer == nil {
		err = usage(errors.New("control.receipt_key_file is not set: receipts are read with the key that signed them"))
	}
	if err != nil {
		return err
	}
	receipts, directories, unread, err := receiptsIn(c.Receipts)
	if err != nil {
		return err
	}
	for _, name := range directories {
		fmt.Fprintf(a.Out, "%q is a directory, and files in it are not read\n", name)
	}
	for _, err := range unread {
		fmt.Fprintln(a.Out, err)
	}
	ledger, err := pgledger.Open(ctx, loaded.Control.DSN.Reveal())
	if err != nil {
		return err
	}
	defer ledger.Close()
	n := reconciled{once: map[budget.ReservationID]bool{}}
	for _, r := range receipts {
		if err := c.reconcile(ctx, a, ledger, signer, r, &n); err != nil {
			return err
		}
	}
	would := "booked"
	if c.Check {
		would = "would be booked"
	}
	fmt.Fprintf(a.Out, "%d receipts: %d are in the ledger, %d %s, %d name no charge\n", len(receipts), n.there, n.booked, would, n.free)
	if n.unreadable > 0 {
		err = fmt.Errorf("%d receipts are not in the ledger and could not be booked: "+
			"lower the caps by what their answers, and plans that paid for them, cost", n.unreadable)
	}
	if len(unread) > 0 {
		err = errors.Join(err, fmt.Errorf("%d times a file, or a receipt in one, could not be read: ask whoever sent it for it again, and "+
			"run the command again", len(unread)))
	}
	if err != nil {
		return unbooked{err}
	}
	return nil
}

// unbooked is the finding that receipts are left that nobody can book.
type unbooked struct{ error }

// reconcile books one receipt, unless the ledger has its charge, and that of the plan which paid for it.
func (c *auditReconcileCommand) reconcile(ctx context.Context, a *app, ledger *pgledger.Ledger, signer *journal.Signer, r journal.Receipt,
	n *reconciled) error {
	if r.Reservation == "" {
		n.free++
		return nil
	}
	recharge, err := signer.Recharge(r)
	if err != nil && strings.ContainsRune(string(r.Reservation), 0) { // which no database is asked for
		n.unreadable++
		fmt.Fprintf(a.Out, "a receipt of %q cannot be booked: %v\n", r.Reservation, err)
		return nil
	}
	if err == nil {
		err = recharge.Check()
	}
	charges := []budget.Recharge{{ID: r.Reservation}}
	if err == nil {
		charges = recharge.Charges()
	}
	var missing []budget.Recharge
	for _, charge := range charges {
		there, err := ledger.Booked(ctx, charge.ID)
		if err != nil {
			return err
		}
		if !there && !n.once[charge.ID] {
			missing = append(missing, charge)
		}
	}
	booked := len(missing)
	if err == nil && booked > 0 && !c.Check {
		booked, err = ledger.Recharge(ctx, byOperator, []budget.Recharge{recharge})
	}
	switch {
	case booked == 0 && err == nil, len(missing) == 0: // perhaps by somebody else
		n.there++
		return nil
	case err != nil:
		n.unreadable++
		fmt.Fprintf(a.Out, "%q: release %q is not in the ledger, and its receipt cannot be booked: %v\n", r.Dataset, r.Reservation, err)
		return nil
	}
	n.booked++
	does := "is"
	if c.Check {
		does = "would be"
	}
	for _, charge := range missing {
		n.once[charge.ID] = true
		what := "release"
		if charge.ID != r.Reservation {
			what = "plan"
		}
		fmt.Fprintf(a.Out, "%s: %s %s of %s %s booked\n", r.Dataset, what, charge.ID, charge.Analyst, does)
	}
	return nil
}

// receiptsIn reads the receipts in a directory's files, not those in directories there. What cannot be read is told, and keeps nothing else
// from being booked.
func receiptsIn(dir string) (all []journal.Receipt, directories []string, unread []error, err error) {
	files, err := os.ReadDir(dir)
	if err != nil {
		return nil, nil, nil, usage(err)
	}
	for _, f := range files {
		name := filepath.Join(dir, f.Name())
		if info, err := os.Stat(name); err == nil && info.IsDir() {
			directories = append(directories, name)
			continue
		}
		some, errs := receiptsOf(name)
		all = append(all, some...)
		for _, err := range errs {
			if at := new(fs.PathError); errors.As(err, &at) {
				err = at.Err // without the name, which may have anything in it
			}
			unread = append(unread, fmt.Errorf("%q: a receipt cannot be read: %w", name, err))
		}
	}
	return all, directories, unread, nil
}

// receiptsOf reads a file on behind a receipt that cannot be read, if it can be seen where that ends.
func receiptsOf(name string) (all []journal.Receipt, unread []error) {
	if info, err := os.Stat(name); err != nil || !info.Mode().IsRegular() { // opening a pipe would wait for who writes to it
		return nil, []error{cmp.Or(err, errors.New("it is no file"))}
	}
	file, err := os.Open(name)
	if err != nil {
		return nil, []error{err}
	}
	defer file.Close()
	for values := json.NewDecoder(file); ; {
		before := values.InputOffset()
		var r journal.Receipt
		switch err := values.Decode(&r); {
		case err == nil:
			all = append(all, r)
		case errors.Is(err, io.EOF):
			return all, unread
		default:
			unread = append(unread, err)
			if values.InputOffset() == before {
				return all, unread
			}
		}
	}
}
