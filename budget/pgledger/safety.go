package pgledger

import (
	"errors"
	"fmt"
)

// safety is what sql/safety.sql finds out about a server and the role that asks.
type safety struct {
	fsync, fullPageWrites bool
	synchronousCommit     string
	recovering            bool // a standby, or not yet recovered
	rewrites              bool // the role may change the journal
	deletes               bool // the role may delete charges or accounts
	unguarded             bool // what keeps history and ceilings is gone or switched off
}

// refuse names what is unsafe. The text is for the operator: clients are not answered at all.
func (s safety) refuse() error {
	switch {
	case !s.fsync:
		return errors.New("budget: the control database runs with fsync=off; a crash could give budget back")
	case !s.fullPageWrites:
		return errors.New("budget: the control database runs with full_page_writes=off; a crash could damage the ledger")
	case s.synchronousCommit != "on" && s.synchronousCommit != "remote_apply":
		return fmt.Errorf("budget: synchronous_commit is %s; it must be on", s.synchronousCommit)
	case s.recovering:
		return errors.New("budget: the control database is a standby")
	case s.rewrites:
		return errors.New("budget: the ledger's role may change noisegate.entry; connect as the role noisegate of deploy/roles.sql")
	case s.deletes:
		return errors.New("budget: the ledger's role may delete charges or accounts; connect as the role noisegate of deploy/roles.sql")
	case s.unguarded:
		return errors.New("budget: triggers that keep the ledger's history, or the CHECK within_the_ceiling, are gone or switched off; " +
			"see migrations/002_ledger.sql to 010_tail.sql")
	default:
		return nil
	}
}
