// Package pate is private aggregation of teacher ensembles: labels for public queries, chosen by noisy votes of teachers who each saw
// the data of other people (Papernot et al. 2017, arXiv 1610.05755; Papernot, Song et al. 2018, arXiv 1802.08908).
//
// It knows votes, modes, their losses, and the analysis that says what a table of votes really costs. It does not know budgets,
// analysts or HTTP. What it charges never depends on a vote; what depends on votes (everything in files analysis_*.go and
// smooth_*.go) is for those who may see the votes, unless it was sanitised.
//
// Votes are sealed: the labelling half only ever holds a [mechanisms.ExactVector], which package mechanisms alone opens; the analysing
// half holds a [Table], which cannot be printed or encoded and gives out nothing but sealed vectors.
//
// One person's data is in the partition of at most k teachers (max_teachers_per_person, declared, 1 unless said otherwise), so that
// one person moves up to k votes from one class to another: 2k in sum of absolute differences, 2k² in sum of squares, k for the largest.
package pate
