// Package sqlrewrite turns SQL text into a private [Plan].
//
//	text ──parse──▶ *syntax.Query      refuses sql/syntax, sql/unsupported
//	     ──bind───▶ *boundQuery        refuses sql/unknown-*, policy/*
//	     ──plan───▶ *Plan              refuses policy/*, plan/*; the loss is known from here on
//	     ──print──▶ Statement ($n)     runs on the protected database; gives []ExactRow, sealed
//	     ──release▶ released rows      noise, selection, thresholds: the only step that sees sealed values
//	     ──post───▶ *Answer            HAVING, ORDER BY, LIMIT, arithmetic over released values, in PostgreSQL
//
// It knows SQL, privacy units, bounds and sensitivities. It does not know money (whether anyone can pay), HTTP or pgx,
// and it is pure: no I/O, no clock, and no randomness but the sampler that it is handed. A plan, its loss and its
// statement are functions of text, snapshot and options alone.
package sqlrewrite
