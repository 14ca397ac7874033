package fault

import (
	"errors"
	"fmt"
)

// raised is an error that PostgreSQL raised.
type raised interface {
	error
	SQLState() string
}

// Cause describes a failure to the operator, in the log. Of errors that PostgreSQL raised only the code is told: their text may quote
// values. Those about its files, its memory, its connections and its administrator are told: they quote none. Code that reads protected
// tables, or their schema, returns [Coded] errors: no text of these servers is ever logged.
func Cause(err error) string {
	if err == nil {
		return ""
	}
	var server raised
	if errors.As(err, &server) {
		switch class := server.SQLState()[:min(len(server.SQLState()), 2)]; class {
		case "08", "53", "57", "58":
			return server.Error()
		default:
			return "SQLSTATE " + server.SQLState()
		}
	}
	var f *Error
	if errors.As(err, &f) {
		if f.Err == nil {
			return f.Error()
		}
		err = f.Err
	}
	return err.Error()
}

// Coded is an error without what PostgreSQL said: of an error that it raised the code is left. Others are as they are.
func Coded(err error) error {
	var server raised
	if errors.As(err, &server) {
		return fmt.Errorf("SQLSTATE %s", server.SQLState())
	}
	return err
}
