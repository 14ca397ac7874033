package statement

// Command is what a statement of kind Session tells the session to do.
type Command interface{ command() }

// TransactionVerb is what a transaction command does.
type TransactionVerb int

const (
	Begin TransactionVerb = iota
	Commit
	Rollback
	Savepoint
	ReleaseSavepoint
	RollbackTo
)

// Transaction is BEGIN, START TRANSACTION, COMMIT, END, ROLLBACK, ABORT, SAVEPOINT, RELEASE and ROLLBACK TO.
type Transaction struct {
	Verb  TransactionVerb
	Start bool      // was written START TRANSACTION, which is its command tag
	Name  string    // of a savepoint
	Chain bool      // AND CHAIN
	Modes []Setting // of BEGIN: transaction_isolation, transaction_read_only, transaction_deferrable
}

// Setting is one parameter of the session, and what it is set to.
type Setting struct {
	Name    string   // in lower case
	Default bool     // SET name TO DEFAULT
	Values  []string // otherwise: at least one; several only for search_path and DateStyle
}

// Set is SET, SET LOCAL, SET TIME ZONE, SET NAMES, SET TRANSACTION and SET SESSION CHARACTERISTICS. The last is named by its parameters
// default_transaction_isolation, default_transaction_read_only and default_transaction_deferrable.
type Set struct {
	Settings []Setting // one, but for SET TRANSACTION and SET SESSION CHARACTERISTICS
	Local    bool      // until the end of the transaction
}

// Reset is RESET name or RESET ALL.
type Reset struct {
	Name string // in lower case; "" for all
}

// Show is SHOW name or SHOW ALL.
type Show struct {
	Name string // in lower case; "" for all
}

// Discard is DISCARD; Target is ALL, PLANS, SEQUENCES or TEMP.
type Discard struct{ Target string }

// Prepare is PREPARE name (types) AS statement.
type Prepare struct {
	Name  string
	Types []string  // PostgreSQL's names without schema, as int4 and _text; "unknown" is to be inferred
	Body  Statement // of kind Data or Catalog
}

// Execute is EXECUTE name (constants).
type Execute struct {
	Name      string
	Arguments []Constant
}

// Constant is a value as text.
type Constant struct {
	Null bool
	Text string
}

// Deallocate is DEALLOCATE name or DEALLOCATE ALL.
type Deallocate struct {
	Name string // "" for all
}

// Declare is DECLARE name CURSOR FOR query. Cursors go forward only.
type Declare struct {
	Name   string
	Binary bool
	Hold   bool      // outlives its transaction
	Body   Statement // of kind Data or Catalog
}

// Fetch is FETCH and MOVE, forward.
type Fetch struct {
	Name  string
	Move  bool  // MOVE: rows are skipped
	All   bool  // to the end
	Count int64 // otherwise: rows at most, 1 or more
}

// Close is CLOSE name or CLOSE ALL.
type Close struct {
	Name string // "" for all
}

// CopyFormat is how COPY writes rows.
type CopyFormat int

const (
	CopyText CopyFormat = iota
	CopyCSV
	CopyBinary
)

// Copy is COPY (query) TO STDOUT. Its options are complete and checked: where the client gave none, the format's own stands.
type Copy struct {
	Body       Statement // of kind Data or Catalog
	Format     CopyFormat
	Delimiter  byte
	Null       string   // as which NULL is written
	Header     bool     // the first line holds the columns' names
	Quote      byte     // of CSV
	Escape     byte     // of CSV
	ForceQuote []string // of CSV: columns that are always quoted
	ForceAll   bool     // of CSV: all are
}

// Explain is EXPLAIN without ANALYZE.
type Explain struct {
	JSON bool      // FORMAT JSON
	Body Statement // of kind Data or Catalog
}

// Unlisten is UNLISTEN, which does nothing as nothing can be listened to.
type Unlisten struct{}

// Cancel asks for the end of what one of the analyst's own sessions does, as pg_cancel_backend does, or of the session. It is recognised
// as a whole statement: SELECT pg_cancel_backend(n), and the same FROM pg_stat_activity WHERE pid = n.
type Cancel struct {
	Terminate bool   // the session ends, as by pg_terminate_backend
	PID       int32  // of the session; 0 where Parameter says it
	Parameter int    // n of the $n that holds it; 0: PID does
	Column    string // the name of the answer's only column, which is boolean
	Listed    bool   // was read FROM pg_stat_activity: no row where there is no such session
}

// Unlock is SELECT pg_advisory_unlock_all(), as a whole statement: pools say it when a connection comes back. There are no locks.
type Unlock struct {
	Column string // the name of the answer's only column, which is void
}

func (Transaction) command() {}
func (Set) command()         {}
func (Reset) command()       {}
func (Show) command()        {}
func (Discard) command()     {}
func (Prepare) command()     {}
func (Execute) command()     {}
func (Deallocate) command()  {}
func (Declare) command()     {}
func (Fetch) command()       {}
func (Close) command()       {}
func (Copy) command()        {}
func (Explain) command()     {}
func (Unlisten) command()    {}
func (Cancel) command()      {}
func (Unlock) command()      {}
