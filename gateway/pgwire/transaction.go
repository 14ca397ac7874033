package pgwire

import (
	"slices"

	"noisegate.example/internal/fault"
	"noisegate.example/sqlrewrite/statement"
)

// transaction has PostgreSQL's states, and does nothing else than settings and cursors need. A release cannot be taken back, and each reads
// the rows at its moment. The zero value is none.
type transaction struct {
	open, failed bool
	begun        saved
	saves        []savepoint
}

type savepoint struct {
	name  string
	saved saved
}

// status is that of ReadyForQuery.
func (t *transaction) status() byte {
	switch {
	case t.failed:
		return 'E'
	case t.open:
		return 'T'
	default:
		return 'I'
	}
}

func (t *transaction) fail() { t.failed = t.open }

// mayRun refuses everything in a failed transaction but its end.
func (t *transaction) mayRun(s *statement.Statement) *refusal {
	if !t.failed || s.Kind == statement.Empty {
		return nil
	}
	if command, ok := s.Command.(statement.Transaction); ok {
		switch command.Verb {
		case statement.Commit, statement.Rollback, statement.RollbackTo:
			return nil
		default:
		}
	}
	return failedTransaction()
}

const (
	stateActiveTransaction = "25001"
	maxSavepoints          = 1000
)

// transact does a transaction's command and gives its tag.
func (c *session) transact(command statement.Transaction) (string, *refusal) {
	switch command.Verb {
	case statement.Begin:
		if c.tx.open {
			c.warn(stateActiveTransaction, "there is already a transaction in progress")
		} else {
			c.begin()
		}
		tag := "BEGIN"
		if command.Start {
			tag = "START TRANSACTION"
		}
		return tag, c.settings.set(statement.Set{Settings: command.Modes, Local: true})
	case statement.Commit, statement.Rollback:
		return c.finish(command)
	default:
		return c.save(command)
	}
}

func (c *session) begin() { c.tx = transaction{open: true, begun: c.settings.save()} }

// finish ends a transaction. One that failed is rolled back, whatever was asked for.
func (c *session) finish(command statement.Transaction) (string, *refusal) {
	if !c.tx.open {
		if command.Chain {
			return "", refusef(stateNoTransaction, "AND CHAIN can only be used in transaction blocks")
		}
		c.warn(stateNoTransaction, "there is no transaction in progress")
	}
	commits := command.Verb == statement.Commit && !c.tx.failed
	if c.tx.open && !commits {
		c.settings.goBack(c.tx.begun)
	}
	c.settings.endLocal()
	c.closePortals(func(p *portal) bool { return !p.hold || p.fresh && !commits })
	for _, p := range c.portals {
		p.fresh = false
	}
	if c.tx = (transaction{}); command.Chain {
		c.begin()
	}
	if commits {
		return "COMMIT", nil
	}
	return "ROLLBACK", nil
}

// save sets, releases and goes back to savepoints.
func (c *session) save(command statement.Transaction) (string, *refusal) {
	names := map[statement.TransactionVerb]string{statement.Savepoint: "SAVEPOINT", statement.ReleaseSavepoint: "RELEASE SAVEPOINT",
		statement.RollbackTo: "ROLLBACK TO SAVEPOINT"}
	if !c.tx.open {
		return "", refusef(stateNoTransaction, "%s can only be used in transaction blocks", names[command.Verb])
	}
	if command.Verb == statement.Savepoint {
		if len(c.tx.saves) == maxSavepoints {
			return "", refusef(stateTooLarge, "a transaction has at most %d savepoints", maxSavepoints)
		}
		c.tx.saves = append(c.tx.saves, savepoint{command.Name, c.settings.save()})
		return "SAVEPOINT", nil
	}
	at := -1
	for i, s := range slices.Backward(c.tx.saves) {
		if s.name == command.Name {
			at = i
			break
		}
	}
	if at < 0 {
		return "", refusef(stateNoSavepoint, "savepoint %s does not exist", fault.Quote(command.Name))
	}
	if command.Verb == statement.ReleaseSavepoint {
		c.tx.saves = c.tx.saves[:at]
		return "RELEASE", nil
	}
	c.settings.goBack(c.tx.saves[at].saved)
	c.tx.saves, c.tx.failed = c.tx.saves[:at+1], false
	return "ROLLBACK", nil
}
