package sqlrewrite

import (
	"context"

	"noisegate.example/catalog"
	"noisegate.example/sqlrewrite/internal/fit"
	"noisegate.example/sqlrewrite/internal/steps"
)

// Clustering is k-means, ready to be paid for and run. It is immutable and safe for concurrent use.
type Clustering = fit.Clustering

// ClusterQuestion asks for centres of rows, as texts of SQL.
type ClusterQuestion = fit.ClusterQuestion

// ClusterOptions are the choices of one request, already checked for range by the caller.
type ClusterOptions = fit.ClusterOptions

// Clustered are centres in the units of the columns.
type Clustered = fit.Clustered

// MaxCentres is how many centres a clustering has at most.
const MaxCentres = fit.MaxCentres

// NewClustering plans k-means. Its errors are those of [Rewrite] for a query over the same expressions, and plan/fit; it touches neither
// data nor budget.
func NewClustering(ctx context.Context, q ClusterQuestion, snapshot *catalog.Snapshot, o ClusterOptions) (*Clustering, error) {
	return steps.Run(ctx, func(n *steps.Count) (*Clustering, error) {
		o.Steps = n
		return fit.NewClustering(q, snapshot, o)
	})
}
