package main

import (
	"context"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"os"

	"noisegate.example/api"
	"noisegate.example/budget"
	"noisegate.example/budget/journal"
	"noisegate.example/internal/strictjson"
)

// secondFlags are those of a change that a second steward signs: they sign for who makes it, and print the signature, with which the other
// makes it.
type secondFlags struct {
	For       string `help:"Sign, with --key, as the second steward for NAME, who makes the change; prints the signature and changes nothing." placeholder:"NAME" and:"second"`
	As        string `help:"Who signs with --for: the name of the key in the gateway's configuration." placeholder:"NAME" and:"second"`
	Signature string `type:"path" help:"A second steward's signature, which --for printed." placeholder:"FILE"`
}

func (f secondFlags) pair() budget.Pair { return budget.Pair{Proposer: f.For, Approver: f.As} }

// given reads the signature that was printed; nil for none. The key is that of who signs now.
func (f secondFlags) given(key string) (*api.RefillSignature, error) {
	switch {
	case f.For != "" && key == "":
		return nil, usage(errors.New("--for signs with the key of --key"))
	case f.Signature == "":
		return nil, nil
	case key != "":
		return nil, usage(errors.New("--signature is sent as it is: leave out --key"))
	}
	signature := &api.RefillSignature{}
	return signature, readSigned(f.Signature, signature)
}

// readSigned reads what a second steward sent.
func readSigned(file string, into any) error {
	text, err := os.ReadFile(file)
	if err == nil {
		err = strictjson.Check(text)
	}
	if err == nil {
		err = json.Unmarshal(text, into)
	}
	if err != nil {
		return usage(fmt.Errorf("the signature cannot be read: %w", err))
	}
	return nil
}

func readSigner(file string) (*journal.Signer, error) {
	text, err := os.ReadFile(file)
	if err != nil {
		return nil, usage(err)
	}
	signer, err := journal.NewSigner(text)
	if err != nil {
		return nil, usage(err)
	}
	return signer, nil
}

// signatureOf is a signature as it goes over the wire.
func signatureOf(m budget.Mandate) *api.RefillSignature {
	signed := &api.RefillSignature{Number: m.Number, Lifetime: api.Promise{Delta: api.Decimal(m.Lifetime.Delta.String())}, SignedAt: m.At,
		Key: m.Key, Signature: base64.StdEncoding.EncodeToString(m.Signature), Proposer: m.Pair.Proposer, Approver: m.Pair.Approver,
		Ledger: m.Ledger}
	if m.Lifetime.Bounded {
		signed.Lifetime.Epsilon = api.Decimal(m.Lifetime.Epsilon.String())
	}
	return signed
}

// ledgerOf is what signatures name of a dataset's ledger.
func ledgerOf(ctx context.Context, client *api.Client, dataset string) (string, error) {
	page, err := client.Audit(ctx, dataset, "")
	if err != nil {
		return "", err
	}
	for _, head := range page.Heads {
		if head.Dataset == dataset && head.Ledger != "" {
			return head.Ledger, nil
		}
	}
	return "", errUnnamed
}

var errUnnamed = errors.New("the gateway does not say which ledger it has: it is older than this program")

// signLimit signs a change of an account's limit (nil: nobody has the account yet) as the second steward, and shows what it signs.
func (a *app) signLimit(signer *journal.Signer, ledger string, before *api.Account, id budget.AccountID, limit api.BudgetLimit,
	pair budget.Pair) (*api.RefillSignature, error) {
	after, err := limitOf(limit)
	if err != nil {
		return nil, err
	}
	change := budget.LimitChange{Account: budget.Account{ID: id, Limit: after},
		Mandate: budget.Mandate{Number: 1, Lifetime: after.Promise(), At: a.now(), Pair: pair, Ledger: ledger}}
	if before != nil {
		change.Mandate.Number = before.Refills + 1
	}
	if before != nil && !before.Due {
		limit, err := limitOf(before.Limit)
		if err != nil {
			return nil, err
		}
		change.Before = &limit
	}
	change = signer.SignLimit(change)
	if _, err := a.Err.Write(change.Text()); err != nil {
		return nil, err
	}
	return signatureOf(change.Mandate), nil
}

type policySignCommand struct {
	policyFile
	Key string `required:"" type:"path" help:"The key to sign with, which budget key made." placeholder:"FILE"`
	For string `required:"" help:"Who applies the policy: the subject of their tokens." placeholder:"NAME"`
	As  string `required:"" help:"Who signs: the name of the key in the gateway's configuration." placeholder:"NAME"`
}

// run shows what the file changes, and what is signed of it.
func (c *policySignCommand) run(ctx context.Context, a *app) error {
	signer, err := readSigner(c.Key)
	if err != nil {
		return err
	}
	out := a.Out
	a.Out = a.Err // which is for the eye: the signature alone is printed
	policy, _, review, err := c.compared(ctx, a)
	a.Out = out
	if err != nil {
		return err
	}
	if review.Ledger == "" {
		return errUnnamed
	}
	change := changeOf(policy, review.Version)
	change.Approval = &budget.Approval{Pair: budget.Pair{Proposer: c.For, Approver: c.As}, At: a.now(), Ledger: review.Ledger}
	approval := signer.SignPolicy(change)
	change.Approval = &approval
	if _, err := a.Err.Write(change.Text()); err != nil {
		return err
	}
	_, err = fmt.Fprintln(a.Out, wireApproval(approval))
	return err
}

func wireApproval(a budget.Approval) api.Approval {
	encode := base64.StdEncoding.EncodeToString
	return api.Approval{Proposer: a.Proposer, Approver: a.Approver, SignedAt: a.At, Key: a.Key, Signature: encode(a.Signature),
		ProposerKey: a.ProposerKey, ProposerSignature: encode(a.ProposerSignature), Ledger: a.Ledger}
}
