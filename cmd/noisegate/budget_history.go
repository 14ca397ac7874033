package main

import (
	"context"
	"encoding/json"
	"fmt"
	"math/big"
	"slices"
	"time"

	"noisegate.example/api"
)

// movement is one entry of an account's history.
type movement struct {
	At        time.Time   `json:"at"`
	Kind      string      `json:"kind"`
	Subject   string      `json:"subject"`
	ReleaseID string      `json:"release_id,omitempty"`
	Moved     amountsMade `json:"moved"` // negative when a charge ended as less than was reserved
	Used      amountsMade `json:"used"`  // spent and reserved, from here on
}

// amountsMade are amounts that were added up. Losses without a finite ε count in ρ only.
type amountsMade struct {
	Epsilon *big.Rat
	Rho     *big.Rat
}

// MarshalJSON writes decimals, as the API does.
func (m amountsMade) MarshalJSON() ([]byte, error) {
	return json.Marshal(map[string]api.Decimal{"epsilon": decimalOf(m.Epsilon), "rho": decimalOf(m.Rho)})
}

func decimalOf(r *big.Rat) api.Decimal {
	places, _ := r.FloatPrec() // amounts are decimals, and so are their sums
	return api.Decimal(r.FloatString(places))
}

func (m amountsMade) plus(o amountsMade) amountsMade {
	return amountsMade{new(big.Rat).Add(m.Epsilon, o.Epsilon), new(big.Rat).Add(m.Rho, o.Rho)}
}

func (m amountsMade) minus(o amountsMade) amountsMade {
	return amountsMade{new(big.Rat).Sub(m.Epsilon, o.Epsilon), new(big.Rat).Sub(m.Rho, o.Rho)}
}

func nothing() amountsMade { return amountsMade{new(big.Rat), new(big.Rat)} }

func readAmounts(a api.Amounts) (amountsMade, error) {
	sum := nothing()
	for _, part := range []struct {
		text api.Decimal
		to   *big.Rat
	}{{a.Epsilon, sum.Epsilon}, {a.Rho, sum.Rho}} {
		if part.text == "" {
			continue
		}
		if _, ok := part.to.SetString(string(part.text)); !ok {
			return sum, fmt.Errorf("the journal has an amount that is none: %s", part.text)
		}
	}
	return sum, nil
}

// movements finds an account's history in a journal.
func (j *ledgerExport) movements(account string) (all []movement, err error) {
	number := int64(-1) // of the account; its first entry opens it and says who it is
	counts := map[string]amountsMade{}
	used := nothing()
	for _, e := range j.entries {
		if e.Account != "" && len(e.AccountIDs) == 1 {
			name, err := nameOf(e.Account)
			if err != nil {
				return nil, fmt.Errorf("entry %d: %w", e.Seq, err)
			}
			if name == account {
				number = e.AccountIDs[0]
			}
		}
		if !slices.Contains(e.AccountIDs, number) {
			continue
		}
		m := movement{At: e.At, Kind: e.Kind, Subject: e.Subject, ReleaseID: e.ReleaseID, Moved: nothing(), Used: used}
		if e.ReleaseID != "" {
			now, err := readAmounts(e.Amounts)
			if err != nil {
				return nil, err
			}
			before, ok := counts[e.ReleaseID]
			if !ok {
				before = nothing()
			}
			m.Moved, counts[e.ReleaseID] = now.minus(before), now
			used = used.plus(m.Moved)
			m.Used = used
		}
		all = append(all, m)
	}
	return all, nil
}

// nameOf is an account as the journal keeps it, as people name it.
func nameOf(text string) (string, error) {
	var record struct{ Scope, Name string }
	if err := json.Unmarshal([]byte(text), &record); err != nil {
		return "", err
	}
	if record.Name == "" {
		return record.Scope, nil
	}
	return record.Scope + ":" + record.Name, nil
}

type budgetHistoryCommand struct{ accountFlags }

func (c *budgetHistoryCommand) run(ctx context.Context, a *app) error {
	all, err := c.movements(ctx, a)
	if err != nil {
		return err
	}
	if c.JSON {
		for _, m := range all {
			if err := printJSON(a.Out, m); err != nil {
				return err
			}
		}
		return nil
	}
	t := &table{grouped: a.terminal}
	t.header("at", "what", "who", "release", "epsilon", "epsilon used", "rho used")
	for _, m := range all {
		moved := ""
		if m.ReleaseID != "" {
			moved = up.shorten(decimalOf(m.Moved.Epsilon))
		}
		t.row(m.At.UTC().Format(time.DateTime), m.Kind, m.Subject, m.ReleaseID, moved, up.shorten(decimalOf(m.Used.Epsilon)),
			up.shorten(decimalOf(m.Used.Rho)))
	}
	t.write(a.Out)
	return nil
}

func (c *accountFlags) movements(ctx context.Context, a *app) ([]movement, error) {
	client, err := c.client(a)
	if err != nil {
		return nil, err
	}
	j, err := fetchJournal(ctx, client, c.Dataset)
	if err != nil {
		return nil, a.refused(c.JSON, "", err)
	}
	return j.movements(c.Account)
}
