// Package deploy holds the files that an operator installs Noisegate with, for programs that install it themselves (the
// demo, tests).
//
// It knows the text of these files. It does not know how they are run.
package deploy

import _ "embed"

//go:embed roles.sql
var roles string

//go:embed control.sql
var control string

// Roles is roles.sql: run by a superuser in every protected database and in the control database.
func Roles() string { return roles }

// Control is control.sql: run by a superuser in the control database, after [Roles] and before migrations.
func Control() string { return control }
