package pate

import (
	"bytes"
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"hash"
	"slices"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
	"github.com/jackc/pgx/v5/pgxpool"

	"noisegate.example/internal/fault"
)

// Store keeps ensembles, their votes and what was released of them in the control database. It is safe for concurrent use.
//
// Its errors are pate/* faults, and data/unavailable for whatever else a database does; that is [fault.Untouched] if no vote can have
// been read.
type Store struct{ pool *pgxpool.Pool }

// Open prepares connections as the gateway's role; [Store.Close] ends them. The DSN may set pool_max_conns.
func Open(ctx context.Context, dsn string) (*Store, error) {
	config, err := pgxpool.ParseConfig(dsn)
	if err != nil {
		return nil, errors.New("pate: the DSN of the control database cannot be read") // without the DSN: it may hold a password
	}
	for name, value := range map[string]string{
		"application_name": "noisegate votes",
		"search_path":      "",
		// Statements take lists of up to 100,000 keys, and a plan that was made for lists of any length is made for short ones. Tables that
		// were just filled have no statistics yet: what is found by key is not to be read as a whole for each key.
		"plan_cache_mode": "force_custom_plan",
		"enable_seqscan":  "off",
		// Votes of the largest ensembles, and 100,000 labels, take longer than the role's limit, which is for statements of the ledger.
		"statement_timeout": "5min",
	} {
		config.ConnConfig.RuntimeParams[name] = value
	}
	pool, err := pgxpool.NewWithConfig(ctx, config)
	if err != nil {
		return nil, fault.DataUnavailable(err)
	}
	return &Store{pool}, nil
}

// Close ends all connections when they are idle.
func (s *Store) Close() { s.pool.Close() }

// Definition begins a version of an ensemble.
type Definition struct {
	Name      string // [a-z][a-z0-9_-]*, at most 63 bytes
	Dataset   string // that the teachers were trained on; the same for all versions
	Ensemble  Ensemble
	Partition []byte          // declared SHA-256 of how people were dealt out to teachers, or nil
	Sanitise  json.RawMessage // parameters of the sanitised ε, or nil
	By        string
}

// Version is one version of an ensemble. Everything in it is public.
type Version struct {
	ID        int64 // of this version, among those of all ensembles
	Name      string
	Number    int64 // from 1
	Dataset   string
	Ensemble  Ensemble
	Partition []byte
	Sanitise  json.RawMessage
	DefinedBy string
	DefinedAt time.Time
	Queries   int64  // 0 until votes are loaded
	Digest    []byte // SHA-256 of names and counts, nil until votes are loaded; for stewards, since votes can be guessed and compared
	LoadedBy  string
	LoadedAt  *time.Time
	SealedBy  string
	SealedAt  *time.Time // nil while votes may change
	Contested bool       // an earlier one was sealed over the same people or votes under another declaration, so that this one sells nothing
	Rechosen  bool       // an earlier one has the same votes and other parameters of the sanitised ε: these were chosen with the votes in view
}

// Define begins a version. A version that is not sealed yet is replaced, votes and all. What was sealed under the name, or over the same
// partition of people, binds it: one account, one dataset, and as many teachers a person, or more.
func (s *Store) Define(ctx context.Context, d Definition) (*Version, error) {
	err := pgx.BeginFunc(ctx, s.pool, func(tx pgx.Tx) error {
		if err := declaring(ctx, tx); err != nil {
			return err
		}
		if err := s.bound(ctx, tx, d); err != nil {
			return err
		}
		number := int64(1)
		last, err := version(ctx, tx, d.Name, false)
		switch {
		case fault.CodeOf(err) == fault.CodePateUnknownEnsemble:
		case err != nil:
			return err
		case last.Dataset != d.Dataset:
			return fault.PateEnsemble("dataset", "that of the earlier versions, whose budget all versions share")
		case last.SealedAt != nil:
			number = last.Number + 1
		default:
			if last, err = draft(ctx, tx, d.Name); err != nil { // waits for a load, whose votes go with the others
				return err
			}
			number = last.Number
			if err := discard(ctx, tx, last.ID); err != nil {
				return err
			}
		}
		_, err = tx.Exec(ctx, sqlDefine, d.Name, number, d.Dataset, d.Ensemble.Classes(), d.Ensemble.Teachers(),
			d.Ensemble.MaxTeachersPerPerson(),
			d.Partition, []byte(d.Sanitise), d.By)
		return err
	})
	if err != nil {
		return nil, plain(err)
	}
	return s.Latest(ctx, d.Name)
}

// declaring lets one transaction at a time declare what votes are.
func declaring(ctx context.Context, tx pgx.Tx) error {
	_, err := tx.Exec(ctx, "SELECT pg_advisory_xact_lock(hashtextextended('noisegate.pate_ensemble', 0))")
	return err
}

// bound refuses a definition that contradicts what was sealed before. Declaring the same votes again, with fewer teachers a person or
// another account, would sell them for less, or twice. It is asked when a version is defined and again when it is sealed: another may have
// been sealed in between.
func (s *Store) bound(ctx context.Context, tx pgx.Tx, d Definition) error {
	rows, err := tx.Query(ctx, sqlBinding, d.Name, d.Partition)
	if err != nil {
		return err
	}
	var name string
	var perPerson int64
	_, err = pgx.ForEachRow(rows, []any{&name, &perPerson}, func() error {
		switch {
		case name != d.Name:
			return fault.PateEnsemble("partition_sha256", "that of no other ensemble: a partition of people belongs to one ensemble, whose "+
				"account all its versions share")
		case d.Ensemble.MaxTeachersPerPerson() < perPerson:
			return fault.PateEnsemble("max_teachers_per_person", fmt.Sprintf("at least %d, as in an earlier version over the same people",
				perPerson))
		}
		return nil
	})
	return err
}

// sameVotes refuses to seal votes that were sealed before under another declaration: another name, whose account they
// would be sold from once more, another dataset, fewer teachers a person, or other parameters of the sanitised ε, which
// would be chosen with the votes in view. Of what was sealed twice before this was refused, the first stays as it is;
// the others are [Version.Contested]: what was bought of them stays readable.
func (s *Store) sameVotes(ctx context.Context, tx pgx.Tx, v *Version) error {
	rows, err := tx.Query(ctx, sqlSameVotes, v.Digest, v.ID)
	if err != nil {
		return err
	}
	var name, dataset string
	var perPerson int64
	var sanitise []byte
	_, err = pgx.ForEachRow(rows, []any{&name, &dataset, &perPerson, &sanitise}, func() error {
		switch {
		case dataset != v.Dataset:
			return fault.PateEnsemble("its votes", "those of no other dataset: these were sealed for another one before, whose budget they "+
				"spend from")
		case name != v.Name:
			return fault.PateEnsemble("its votes", "those of no other ensemble: these were sealed under another name before, whose account "+
				"sells them")
		case v.Ensemble.MaxTeachersPerPerson() < perPerson:
			return fault.PateEnsemble("max_teachers_per_person", fmt.Sprintf("at least %d, as these votes were sealed with before", perPerson))
		case !bytes.Equal(sanitise, v.Sanitise):
			return fault.PateEnsemble("sanitise", "what these votes were first sealed with")
		}
		return nil
	})
	return err
}

// discard drops a version that is being prepared.
func discard(ctx context.Context, tx pgx.Tx, id int64) error {
	if _, err := tx.Exec(ctx, "DELETE FROM noisegate.pate_votes WHERE ensemble_id = $1", id); err != nil {
		return err
	}
	_, err := tx.Exec(ctx, "DELETE FROM noisegate.pate_ensemble WHERE ensemble_id = $1", id)
	return err
}

// Latest is the newest version, sealed or not.
func (s *Store) Latest(ctx context.Context, name string) (*Version, error) {
	v, err := version(ctx, s.pool, name, false)
	return v, plain(err)
}

// Names are those of all ensembles, in order.
func (s *Store) Names(ctx context.Context) ([]string, error) {
	rows, err := s.pool.Query(ctx, sqlNames)
	if err != nil {
		return nil, plain(err)
	}
	names, err := pgx.CollectRows(rows, pgx.RowTo[string])
	return names, plain(err)
}

// Sealed is the newest version whose votes are final: the one that labels come from.
func (s *Store) Sealed(ctx context.Context, name string) (*Version, error) {
	v, err := version(ctx, s.pool, name, true)
	if fault.CodeOf(err) == fault.CodePateUnknownEnsemble {
		if _, err := s.Latest(ctx, name); err != nil {
			return nil, err
		}
		return nil, fault.PateNotSealed(name)
	}
	return v, plain(err)
}

// querier is the pool, or a transaction.
type querier interface {
	QueryRow(ctx context.Context, sql string, args ...any) pgx.Row
}

func version(ctx context.Context, q querier, name string, sealedOnly bool) (*Version, error) {
	v, p := &Version{}, EnsembleParameters{}
	var loadedBy, sealedBy *string
	err := q.QueryRow(ctx, sqlVersion, name, sealedOnly).Scan(&v.ID, &v.Name, &v.Number, &v.Dataset, &p.Classes, &p.Teachers,
		&p.MaxTeachersPerPerson, &v.Partition, (*[]byte)(&v.Sanitise), &v.DefinedBy, &v.DefinedAt, &v.Queries, &v.Digest,
		&loadedBy, &v.LoadedAt, &sealedBy, &v.SealedAt, &v.Contested, &v.Rechosen)
	if errors.Is(err, pgx.ErrNoRows) {
		return nil, fault.PateUnknownEnsemble(name)
	}
	if err != nil {
		return nil, err
	}
	if loadedBy != nil {
		v.LoadedBy = *loadedBy
	}
	if sealedBy != nil {
		v.SealedBy = *sealedBy
	}
	v.Ensemble, err = NewEnsemble(p)
	return v, err
}

// Load puts votes into the version that is being prepared, in place of those that it had: all of them or none.
func (s *Store) Load(ctx context.Context, name string, votes *Ballots, by string) (*Version, error) {
	err := pgx.BeginFunc(ctx, s.pool, func(tx pgx.Tx) error {
		v, err := draft(ctx, tx, name)
		if err != nil {
			return err
		}
		if e := votes.table.ensemble; !slices.Equal(e.classes, v.Ensemble.classes) || e.teachers != v.Ensemble.teachers {
			return fault.PateRedefined() // while the file was read
		}
		if _, err := tx.Exec(ctx, "DELETE FROM noisegate.pate_votes WHERE ensemble_id = $1", v.ID); err != nil {
			return err
		}
		rows := newVoteRows(v, votes)
		if _, err := tx.CopyFrom(ctx, pgx.Identifier{"noisegate", "pate_votes"}, []string{"ensemble_id", "query_no", "key", "counts"},
			rows); err != nil {
			return err
		}
		_, err = tx.Exec(ctx, `UPDATE noisegate.pate_ensemble SET queries = $2, digest = $3, loaded_by = $4, loaded_at = clock_timestamp()
			WHERE ensemble_id = $1`, v.ID, votes.Queries(), rows.digest.Sum(nil), by)
		return err
	})
	if err != nil {
		return nil, plain(err)
	}
	return s.Latest(ctx, name)
}

// Seal makes the votes final, after it found them to be those that were loaded: what is sealed is what the digest says.
func (s *Store) Seal(ctx context.Context, name, by string) (*Version, error) {
	err := pgx.BeginFunc(ctx, s.pool, func(tx pgx.Tx) error {
		if err := declaring(ctx, tx); err != nil {
			return err
		}
		v, err := draft(ctx, tx, name)
		if err != nil {
			return err
		}
		if v.Queries == 0 {
			return fault.PateNoVotes(name)
		}
		if digest, err := digestOf(ctx, tx, v); err != nil || !bytes.Equal(digest, v.Digest) {
			return fault.DataUnavailable(cmp.Or(err, errTampered))
		}
		if err := s.bound(ctx, tx, Definition{Name: v.Name, Dataset: v.Dataset, Ensemble: v.Ensemble, Partition: v.Partition}); err != nil {
			return err
		}
		if err := s.sameVotes(ctx, tx, v); err != nil {
			return err
		}
		_, err = tx.Exec(ctx, "UPDATE noisegate.pate_ensemble SET sealed_by = $2, sealed_at = clock_timestamp() WHERE ensemble_id = $1", v.ID, by)
		return err
	})
	if err != nil {
		return nil, plain(err)
	}
	return s.Latest(ctx, name)
}

// draft locks the version that is being prepared.
func draft(ctx context.Context, tx pgx.Tx, name string) (*Version, error) {
	var id int64
	err := tx.QueryRow(ctx, "SELECT ensemble_id FROM noisegate.pate_ensemble WHERE name = $1 AND sealed_at IS NULL FOR NO KEY UPDATE",
		name).Scan(&id)
	if err != nil && !errors.Is(err, pgx.ErrNoRows) {
		return nil, err
	}
	v, latestErr := version(ctx, tx, name, false)
	switch {
	case latestErr != nil:
		return nil, latestErr
	case v.SealedAt != nil:
		return nil, fault.PateSealed(name)
	case err != nil || v.ID != id:
		return nil, fault.PateRedefined() // while this waited for the lock
	}
	return v, nil
}

// digestOf is the digest of the votes that are stored.
func digestOf(ctx context.Context, tx pgx.Tx, v *Version) ([]byte, error) {
	rows, err := tx.Query(ctx, "SELECT counts, key FROM noisegate.pate_votes WHERE ensemble_id = $1 ORDER BY query_no", v.ID)
	if err != nil {
		return nil, err
	}
	defer rows.Close()
	digest := sha256.New()
	for rows.Next() {
		raw := rows.RawValues()
		addRow(digest, raw[0], raw[1])
	}
	return digest.Sum(nil), rows.Err()
}

// addRow digests one query's counts and name.
func addRow(digest hash.Hash, counts, key []byte) {
	_, _ = digest.Write(binary.BigEndian.AppendUint32(nil, uint32(len(counts)+len(key)))) // a hash takes everything
	_, _ = digest.Write(counts)
	_, _ = digest.Write(key)
}

// voteRows hands votes to COPY and digests them on the way.
type voteRows struct {
	version *Version
	votes   *Ballots
	next    int
	packed  []byte
	digest  hash.Hash
}

func newVoteRows(v *Version, votes *Ballots) *voteRows {
	return &voteRows{version: v, votes: votes, next: -1, digest: sha256.New()}
}

// Next implements [pgx.CopyFromSource].
func (r *voteRows) Next() bool { r.next++; return r.next < r.votes.Queries() }

// Err implements [pgx.CopyFromSource].
func (r *voteRows) Err() error { return nil }

// Values implements [pgx.CopyFromSource].
func (r *voteRows) Values() ([]any, error) {
	key := r.votes.keys[r.next]
	r.packed = pack(r.packed[:0], r.votes.table.row(r.next))
	addRow(r.digest, r.packed, []byte(key))
	return []any{r.version.ID, int32(r.next), key, r.packed}, nil
}

// countBytes is what a stored count takes (see [MaxTeachers]). It is the same for every count, so that no row's length reveals anything.
const countBytes = 2

// pack appends the stored form of one query's counts.
func pack(to []byte, counts []uint32) []byte {
	for _, n := range counts {
		to = binary.BigEndian.AppendUint16(to, uint16(n))
	}
	return to
}

var errPacked = errors.New("pate: stored votes have another size than the ensemble's")

// unpack reads stored counts. Whether they add up to the number of teachers is checked where they are sealed.
func unpack(e Ensemble, packed []byte) ([]uint32, error) {
	if len(packed) != countBytes*e.ClassCount() {
		return nil, errPacked
	}
	counts := make([]uint32, e.ClassCount())
	for i := range counts {
		counts[i] = uint32(binary.BigEndian.Uint16(packed[i*countBytes:]))
	}
	return counts, nil
}

// plain passes faults on and makes everything else data/unavailable. What PostgreSQL says of votes is not repeated.
func plain(err error) error {
	var f *fault.Error
	var raised *pgconn.PgError
	switch {
	case err == nil, errors.As(err, &f):
		return err
	case errors.As(err, &raised) && raised.Code == "23505" && raised.TableName == "pate_ensemble":
		return fault.PateRedefined() // two definitions at once
	case errors.As(err, &raised):
		return fault.DataUnavailable(fmt.Errorf("pate: SQLSTATE %s", raised.Code))
	default:
		return fault.DataUnavailable(err)
	}
}
