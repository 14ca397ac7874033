package budgettest

import (
	"context"
	"crypto/sha256"
	"slices"
	"time"

	"noisegate.example/budget"
	"noisegate.example/budget/internal/machine"
)

// about lets an operation happen that looks at what is in force of a dataset.
func (m *Memory) about(dataset string, operation func(*machine.Machine) error) error {
	return m.at(func(s *machine.Machine) error {
		s.InForce, s.Raised = m.inForce[dataset], m.raisedIn(dataset)
		s.InForce.Ledger = m.ledgerName(dataset)
		err := operation(s)
		m.inForce[dataset], s.Newest = s.InForce, budget.Policy{} // which is of one dataset
		return err
	})
}

// raisedIn is who raised the caps of a dataset's newest policy last, alone.
func (m *Memory) raisedIn(dataset string) string {
	rows := m.inForce[dataset].Rows
	if len(rows) == 0 {
		return ""
	}
	return rows[len(rows)-1].RaisedBy
}

func (m *Memory) RecordPolicy(_ context.Context, p budget.NewPolicy) (at time.Time, err error) {
	if err := p.Check(); err != nil {
		return at, err
	}
	p.Document, p.Facts = sha256.Sum256([]byte(p.Text)), sha256.Sum256(p.Checked)
	err = m.about(p.Dataset, func(s *machine.Machine) (err error) {
		at, err = s.RecordPolicy(p)
		return err
	})
	return at, err
}

// EnterPolicies implements [budget.InForce]: nothing here is older than entries.
func (*Memory) EnterPolicies(context.Context, string, []budget.PolicyVersion) error { return nil }

func (m *Memory) EverProtected(_ context.Context, dataset string) (map[string][]uint32, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	ever := map[string][]uint32{}
	for _, e := range m.entries {
		if v, ok := machine.PolicyOf(e); ok && e.Dataset == dataset {
			for name, oid := range v.Protected {
				ever[name] = append(ever[name], oid)
			}
		}
	}
	return ever, nil
}

func (m *Memory) TwoFor(_ context.Context, dataset string) ([]string, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	return slices.Clone(m.inForce[dataset].TwoFor), nil
}

func (m *Memory) LedgerName(_ context.Context, dataset string) (string, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.ledgerName(dataset), nil
}

func (m *Memory) ledgerName(dataset string) string {
	for _, e := range m.entries {
		if name := budget.LedgerName(e); name != "" && e.Dataset == dataset {
			return name
		}
	}
	return budget.NoLedger
}

// PolicyRows implements [budget.InForce]. Rows do not name their entries.
func (m *Memory) PolicyRows(_ context.Context, dataset string) ([]budget.PolicyRow, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	return slices.Clone(m.inForce[dataset].Rows), nil
}

func (m *Memory) RecordFreeReads(_ context.Context, r budget.FreeReads) error {
	if err := r.Check(); err != nil {
		return err
	}
	return m.at(func(s *machine.Machine) error {
		s.RecordFreeReads(r)
		return nil
	})
}

func (m *Memory) RecordKeys(_ context.Context, k budget.SigningKeys) error {
	return m.about(k.Dataset, func(s *machine.Machine) error {
		s.RecordKeys(k)
		return nil
	})
}
