// Package demodata invents the people of `noisegate demo`: a census and a table of visits that look like real data and
// describe nobody.
//
// It knows distributions and nothing else: no database, no policy, no noise. The same seed and the same number of rows
// give the same people on every machine and in every version of Go, which is why it has a separate generator.
//
// The numbers of people per marital status and per country of birth are the published ones of the UCI Adult data set
// (Becker and Kohavi 1996, doi:10.24432/C5XW20, CC BY 4.0), so that answers can be compared with the literature; the rest
// follows hand-made tables that only have to be plausible. As in Adult there is exactly one person from
// Holand-Netherlands: the demo's attacks are on them.
package demodata
