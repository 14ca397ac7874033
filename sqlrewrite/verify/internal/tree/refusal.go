package tree

import (
	"fmt"

	"noisegate.example/sqlrewrite/internal/steps"
)

// Refusal says why a statement is not proven: a shape of SQL, never a value.
type Refusal struct{ Why string }

func (r *Refusal) Error() string { return "verify: " + r.Why }

// Refuse ends a derivation. Every exported function turns it into an error.
func Refuse(format string, args ...any) { panic(&Refusal{fmt.Sprintf(format, args...)}) }

// Caught gives back the refusal that ended a derivation; a failure of the verifier itself is one too. What ends planning passes.
func Caught(err *error) {
	switch r := recover().(type) {
	case nil:
	case *Refusal:
		*err = r
	default:
		steps.Passes(r)
		*err = &Refusal{fmt.Sprintf("the verifier failed: %v", r)}
	}
}
