package plan_test

import (
	"testing"

	"noisegate.example/sqlrewrite/internal/rewritetest"
)

func TestGolden(t *testing.T) { rewritetest.Golden(t, "plan") }
