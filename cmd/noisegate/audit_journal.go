package main

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"math"
	"os"
	"slices"
	"strings"
	"time"
	"unicode"
	"unicode/utf8"

	"noisegate.example/api"
	"noisegate.example/budget/journal"
)

// ledgerExport is the entries of a ledger, oldest first, and where its chains end.
type ledgerExport struct {
	entries   []api.AuditEntry
	heads     []api.ChainHead
	policies  []api.StoredPolicy       // as they were stored when the heads were read
	stored    bool                     // that is known
	tables    []api.StoredTables       // none: an older program wrote it
	broken    map[string]string        // what a running gateway found out about its datasets; nil: nobody asked it
	signature *journal.ExportSignature // nil: there is none
}

// fetchJournal reads the journal of a running gateway.
func fetchJournal(ctx context.Context, client *api.Client, dataset string) (*ledgerExport, error) {
	lines, err := client.Export(ctx, dataset)
	if err != nil {
		return nil, err
	}
	defer lines.Close()
	return readJournal(lines)
}

// readJournal reads an export. One that does not end with its heads, or goes on after them, was changed.
func readJournal(r io.Reader) (*ledgerExport, error) {
	j, n := &ledgerExport{}, 0
	ended := false
	var err error
	j.signature, err = journal.ReadExport(r, func(text []byte) error {
		n++
		var line struct {
			api.AuditEntry
			Heads    *[]api.ChainHead    `json:"heads"`
			Policies *[]api.StoredPolicy `json:"policies"`
			Tables   []api.StoredTables  `json:"tables"`
		}
		if err := journal.ReadLine(text, &line); err != nil {
			return fmt.Errorf("line %d cannot be read: %w", n, err)
		}
		switch {
		case ended:
			return fmt.Errorf("line %d comes after the heads of its chains", n)
		case line.Heads != nil:
			ended, j.heads, j.tables = true, *line.Heads, line.Tables
			if j.stored = line.Policies != nil; j.stored { // else an older program wrote it
				j.policies = *line.Policies
			}
		default:
			j.entries = append(j.entries, line.AuditEntry)
		}
		return nil
	})
	if err == nil && !ended {
		err = errors.New("it does not end with the heads of its chains: it was cut off")
	}
	if err != nil {
		err = fmt.Errorf("the export is damaged: %w", err)
	}
	if errors.Is(err, journal.ErrChanged) {
		err = unbelieved{err}
	}
	if err != nil {
		return nil, err
	}
	return j, nil
}

type auditExportCommand struct {
	Dataset string `arg:"" optional:"" help:"The dataset; all when absent."`
	Out     string `type:"path" placeholder:"FILE" help:"Write to this file, which must not exist, instead of standard output."`
	gatewayFlags
}

func (c *auditExportCommand) ask(ctx context.Context, a *app, client *api.Client) error {
	lines, err := client.Export(ctx, c.Dataset)
	if err != nil {
		return a.refused(c.JSON, "", err)
	}
	defer lines.Close()
	if c.Out == "" {
		_, err := readJournal(io.TeeReader(lines, a.Out))
		return err
	}
	file, err := os.OpenFile(c.Out, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
	if err != nil {
		return usage(err)
	}
	j, err := readJournal(io.TeeReader(lines, file))
	if err := errors.Join(err, file.Close()); err != nil {
		return errors.Join(err, os.Remove(c.Out))
	}
	fmt.Fprintf(a.Err, "%d entries written to %s\n", len(j.entries), c.Out)
	if j.signature == nil {
		fmt.Fprintln(a.Err, "the export is not signed: the gateway has no control.receipt_key_file")
	}
	return nil
}

type auditTailCommand struct {
	Dataset string `arg:"" optional:"" help:"The dataset; all when absent."`
	Lines   int    `short:"n" default:"20" help:"How many entries to begin with."`
	Follow  bool   `short:"f" help:"Go on with what comes."`
	SQL     bool   `name:"sql" help:"Show what was asked below each reservation."`
	gatewayFlags
}

// tailInterval is how often a tail looks again.
const tailInterval = time.Second

func (c *auditTailCommand) ask(ctx context.Context, a *app, client *api.Client) error {
	last, most := map[string]int64{}, max(c.Lines, 0) // the newest entry of each dataset that was seen, and how many may be shown
	for {
		fresh, err := c.fresh(ctx, client, last, max(most, 1))
		if err != nil {
			return a.refused(c.JSON, "", err)
		}
		for _, e := range slices.Backward(fresh[:min(len(fresh), most)]) {
			if err := c.show(a, e); err != nil {
				return err
			}
		}
		if !c.Follow {
			return nil
		}
		most = math.MaxInt
		select {
		case <-ctx.Done():
			return nil
		case <-time.After(tailInterval):
		}
	}
}

// fresh gives what came since the last look, newest first. It looks at each dataset by itself: numbers rise along the
// chain of one, but those of another may be drawn before and written after.
func (c *auditTailCommand) fresh(ctx context.Context, client *api.Client, last map[string]int64, most int) (fresh []api.AuditEntry,
	err error) {
	names := []string{c.Dataset}
	if c.Dataset == "" {
		page, err := client.Audit(ctx, "", "")
		if err != nil {
			return nil, err
		}
		names = nil
		for _, head := range page.Heads {
			names = append(names, head.Dataset)
		}
	}
	for _, name := range names {
		entries, err := c.newest(ctx, client, name, after{last[name], most})
		if err != nil {
			return nil, err
		}
		if len(entries) > 0 {
			last[name] = entries[0].Seq
		}
		fresh = append(fresh, entries...)
	}
	slices.SortFunc(fresh, func(a, b api.AuditEntry) int { return cmp.Compare(b.Seq, a.Seq) })
	return fresh, nil
}

// after names entries: those after one, and at most so many.
type after struct {
	seq  int64
	most int
}

// newest gives a dataset's entries after one, newest first.
func (c *auditTailCommand) newest(ctx context.Context, client *api.Client, dataset string, wanted after) (fresh []api.AuditEntry,
	err error) {
	read := client.Audit
	if c.SQL {
		page, err := read(ctx, dataset, "")
		if err != nil || len(page.Entries) == 0 || page.Entries[0].Seq <= wanted.seq { // nothing new, whose requests are read in vain
			return nil, err
		}
		read = client.AuditRequests
	}
	for cursor := ""; ; {
		page, err := read(ctx, dataset, cursor)
		if err != nil {
			return nil, err
		}
		for _, e := range page.Entries {
			if e.Seq <= wanted.seq || len(fresh) == wanted.most {
				return fresh, nil
			}
			fresh = append(fresh, e)
		}
		if cursor = page.NextCursor; cursor == "" {
			return fresh, nil
		}
	}
}

func (c *auditTailCommand) show(a *app, e api.AuditEntry) error {
	if c.JSON {
		return printJSON(a.Out, e)
	}
	text := fmt.Sprintf("%d  %s  %-7s  %s  %s", e.Seq, e.At.UTC().Format(time.DateTime), e.Kind, e.Dataset, e.Subject)
	switch {
	case e.ReleaseID != "":
		text += "  " + e.ReleaseID + "  " + amountsText(e.Amounts, up)
		if e.Shared != nil {
			text += "  (shared accounts: " + amountsText(*e.Shared, up) + ")"
		}
	case e.AccountName != "":
		text += "  " + e.AccountName
		if e.Kind == "refill" {
			text += ": " + amountsText(e.Amounts, down) + " more"
		}
		if e.Limit != nil {
			text += ": " + limitText(*e.Limit)
		}
	case e.Kind == "policy" || e.Kind == "free" || e.Kind == "keys" || e.Kind == "clock":
		text += "  " + inForceText(e)
	case e.Account != "": // an older gateway
		text += "  " + e.Account
	}
	if len(e.Request) > 0 {
		text += "\n" + requestText(e.Request)
	}
	_, err := fmt.Fprintln(a.Out, text)
	return err
}

// requestText is what was asked, indented: its SQL where it has one, and below it all else, such as parameters and price;
// without characters that would move a terminal's cursor.
func requestText(request json.RawMessage) string {
	const indent = "    "
	text := string(request)
	var members map[string]json.RawMessage
	var sql string
	if json.Unmarshal(request, &members) == nil && json.Unmarshal(members["sql"], &sql) == nil && sql != "" {
		text = sql
		delete(members, "sql")
		delete(members, "dataset") // stands before it
		if rest, err := json.Marshal(members); err == nil && len(members) > 0 {
			text = strings.TrimSpace(sql) + "\n" + string(rest)
		}
	}
	text = strings.Map(func(r rune) rune {
		if r == '\n' || r == '\t' || unicode.IsPrint(r) {
			return r
		}
		return utf8.RuneError
	}, text)
	return indent + strings.ReplaceAll(strings.TrimSpace(text), "\n", "\n"+indent)
}

// inForceText describes an entry about policies, reads of public tables, keys or clocks.
func inForceText(e api.AuditEntry) string {
	var said struct {
		Version     int64             `json:"applies_policy_version"`
		Document    string            `json:"document_sha256"`
		DataVersion string            `json:"data_version"`
		Protected   map[string]uint32 `json:"protected"`
		Older       bool              `json:"older"`
		TwoFor      []string          `json:"two_for"`
		Approval    *struct {
			Proposer string `json:"proposer"`
			Approver string `json:"approver"`
		} `json:"approval"`
		Day      string   `json:"day"`
		Under    int64    `json:"under_policy_version"`
		Reads    int64    `json:"reads"`
		Stewards []string `json:"steward_keys"`
		Receipts string   `json:"receipt_key"`
		Reason   string   `json:"reason"`
	}
	if json.Unmarshal([]byte(e.Account), &said) != nil {
		return e.Account
	}
	const digits = 12 // of a digest, which is shown whole as JSON
	switch e.Kind {
	case "free":
		return fmt.Sprintf("public tables: %d reads more on %s, under version %d of the policy", said.Reads, said.Day, said.Under)
	case "clock":
		return "time goes on from here: " + said.Reason
	case "keys":
		return fmt.Sprintf("keys of stewards: %s; of receipts: %s", cmp.Or(strings.Join(said.Stewards, ", "), "none"),
			cmp.Or(said.Receipts, "none"))
	}
	text := fmt.Sprintf("version %d of the policy, text %.*s…", said.Version, digits, said.Document)
	if said.DataVersion != "" {
		text += ", data " + said.DataVersion
	}
	text += ", protects " + cmp.Or(strings.Join(slices.Sorted(maps.Keys(said.Protected)), ", "), "nothing")
	if len(said.TwoFor) > 0 {
		text += ", wants two stewards for " + strings.Join(said.TwoFor, ", ")
	}
	if said.Approval != nil {
		text += ", proposed by " + said.Approval.Proposer + " and signed by " + said.Approval.Approver
	}
	if said.Older {
		text += " (applied before policies were entered)"
	}
	return text
}
