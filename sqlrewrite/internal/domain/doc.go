// Package domain has what is proven of the values of expressions: ranges, error-free forms (which raise no error whatever a row holds),
// grids, the keys that can appear, and the table of functions.
//
// It knows types, functions and their operands. It does not know FROM, groups or aggregates, nor how any of it is printed.
//
// # Map
//
//	errorfree.go   the error-free form of each operation
//	proven.go      operands through their proven ranges
//	constant.go    constants beside what they are compared with
//	builtins.go    the table of functions: an entry each
//	builtin.go     what an entry says, and how it is found
//	functions.go   the forms of aggregates and windows
//	rowcall.go     functions of numbers, and of several values of one type
//	rowtext.go     functions of texts
//	rowtime.go     functions of times
//	zone.go        what depends on the time zone of the session
//	template.go    templates of to_char
//	rowinterval.go intervals part by part
//	price.go       what operations cost, by formulas over the sizes of their operands
//	pricetable.go  the prices of operators
//	depth.go       how often LIKE and strpos compare a byte
//	regex.go       the subset of regular expressions that can neither fail nor take long
//	implied.go     ranges on the rows that meet conditions
//	inverse.go     what limits of a value say of its operand
//	grid.go        what lies on a grid
//	timegrid.go    grids of clocks and calendars
//	granules.go    parts of keys that grow with a time
//	inputs.go      the values over which PostgreSQL lists keys
//	columnkeys.go  public keys by column
//	keyvalues.go   public keys by evaluating expressions over what is possible
//	keycalls.go    the same of functions
package domain
