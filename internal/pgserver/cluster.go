package pgserver

import (
	"context"
	"crypto/sha256"
	"fmt"
	"os"
	"path/filepath"
)

// copyCluster makes the cluster of a copy: a tenth of the work of initdb.
func (s *Server) copyCluster(ctx context.Context) error {
	made, err := s.cachedCluster(ctx)
	if err != nil {
		return err
	}
	if out, err := s.program(ctx, "cp", "-a", made, s.data).CombinedOutput(); err != nil {
		return fmt.Errorf("pgserver: cannot copy the cluster: %w: %s", err, lastLines(out))
	}
	return nil
}

// cachedCluster is the directory of a cluster that no server runs on; it is made when these programs have none yet.
func (s *Server) cachedCluster(ctx context.Context) (string, error) {
	cache, err := CacheDir("")
	if err != nil {
		return "", err
	}
	program, err := os.Stat(filepath.Join(s.programs.Bin, "initdb"))
	if err != nil {
		return "", fmt.Errorf("pgserver: no initdb: %w", err)
	}
	owner := "own"
	if s.account != nil {
		owner = fmt.Sprint(s.account.uid)
	}
	key := sha256.Sum256(fmt.Append(nil, s.programs.Bin, program.Size(), program.ModTime().UnixNano(), owner, initdbOptions()))
	dir := filepath.Join(cache, fmt.Sprintf("cluster-%d-%x", s.programs.Version, key[:8]))
	unlock, err := lock(ctx, dir+".lock")
	if err != nil {
		return "", err
	}
	defer unlock()
	if _, err := os.Stat(dir); err == nil {
		return dir, nil
	}
	scratch, err := os.MkdirTemp(cache, "cluster-*")
	if err != nil {
		return "", fmt.Errorf("pgserver: cannot keep a cluster: %w", err)
	}
	defer os.RemoveAll(scratch)
	if err := s.account.own(scratch); err != nil {
		return "", fmt.Errorf("pgserver: cannot hand the directory to the server's user: %w", err)
	}
	data := filepath.Join(scratch, "data")
	if err := s.initdb(ctx, data); err != nil {
		return "", err
	}
	if err := os.Rename(data, dir); err != nil { // at once: a cluster that is there is whole
		return "", fmt.Errorf("pgserver: cannot keep the cluster: %w", err)
	}
	return dir, nil
}
