// Package statement says what each statement of a client's message is: one for the session itself, one that reads an exposed table, one
// about names and types, or one that is refused. Statements about names and types it checks, rewrites and prints for the catalog twin.
//
// It knows PostgreSQL's grammar and the names of its catalogs. It does not know messages, policies, noise or ledgers, and it is pure: the
// same text, names and session give the same outcome.
//
// # Map
//
//	command.go    what a session is told to do, as data
//	refusal.go    every refusal, with its SQLSTATE
//	split.go      from a message to statements
//	session.go    from the parse tree to commands
//	copy.go       the options of COPY and EXPLAIN
//	intervals.go  the ends of intervals as outputs of a question
//	model.go      statements that ask for a regression or for clusters
//	scope.go      which relations a statement names, and whether it writes
//	bind.go       constants in place of parameters, and what types these have
//	relations.go  which relations PostgreSQL's catalogs have, and what becomes of each
//	catalog.go    what a session may see of the catalogs; from a checked query to the text for the twin
//	check.go      a query about catalogs against the lists
//	fields.go     fields that could be calls
//	functions.go  the lists: functions, types, operators
//	hidden.go     the schema of a twin that no list shows
//	replace.go    what becomes of relations and functions that a server's databases share
//	values.go     relations as queries of values
//	outputs.go    the names that PostgreSQL gives outputs
package statement

// Kind is what a statement is, and with that who answers it.
type Kind int

// The kinds of statement. No kind but Data reads an exposed table, and no other kind than Catalog reaches the catalog twin.
const (
	Empty   Kind = iota // no statement: white space, comments
	Session             // answered by the session itself; Command says how
	Data                // names an exposed table, or one that nobody knows: goes to the gateway's service, which refuses what it must
	Catalog             // about names, types or constants alone
	Refused             // never runs; Refusal says why
)

func (k Kind) String() string {
	switch k {
	case Empty:
		return "empty"
	case Session:
		return "session"
	case Data:
		return "data"
	case Catalog:
		return "catalog"
	case Refused:
		return "refused"
	default:
		return "unknown"
	}
}

// Statement is one statement of a message.
type Statement struct {
	Text   string // as the client wrote it, without white space around it and without its semicolon; but see [End]
	Offset int    // characters of the message before Text; positions in Text are shifted by so many
	Kind   Kind

	Command Command  // of kind Session
	Refusal *Refusal // of kind Refused

	Parameters int  // the highest n of its $n; 0: none
	Reads      bool // of kind Catalog: names a relation

	Ends []End // of kind Data, in the order of their places
}

// TableName names an exposed table.
type TableName struct{ Schema, Name string }

// Names are what the relations of a statement can be: the tables that exist for this analyst, and where names without a schema are looked
// for.
type Names struct {
	Database   string      // the dataset's name, as which database.schema.table may call it
	Exposed    []TableName // each exposed table
	SearchPath []string    // schemas, the first first; pg_catalog comes before them unless it is among them
}
