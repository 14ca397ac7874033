package migrations

// The tests live outside the package because pgtest imports it.
var (
	ApplyFiles = apply
	CheckFiles = check
)
