// Package pgwire is Noisegate over PostgreSQL's protocol, version 3: psql, drivers and BI tools ask as they ask a server.
//
// It knows start-up packets, messages, portals, settings, encodings and SQLSTATEs. It does not know what SQL means, noise,
// ledgers or protected databases: a statement that names an exposed table becomes a [gateway.Request] and has no way out but
// the service. What it refuses costs nothing, since it has not asked the service yet. It logs one line for each question, without SQL,
// parameters or durations.
package pgwire

import (
	"context"
	"crypto/rand"
	"crypto/subtle"
	"crypto/tls"
	"encoding/binary"
	"errors"
	"log/slog"
	"net"
	"sync"
	"time"

	"noisegate.example/api"
	"noisegate.example/gateway"
	"noisegate.example/gateway/auth"
	"noisegate.example/gateway/internal/connlimit"
	"noisegate.example/internal/fault"
)

// Verifier says who the bearer of a token is; its errors are auth/*.
type Verifier interface {
	Verify(ctx context.Context, token string) (auth.Principal, error)
}

// Questions answers what is asked in SQL; its methods are those of [gateway.Service].
type Questions interface {
	Query(context.Context, auth.Principal, gateway.Request) (*gateway.Answer, error)
	Columns(ctx context.Context, who auth.Principal, r api.QueryRequest, rows bool) ([]api.Column, error)
	Estimate(context.Context, auth.Principal, api.QueryRequest) (*api.EstimateResponse, error)
}

// Config is what the door is made of. Service and Verifier are needed.
type Config struct {
	Service   *gateway.Service
	Questions Questions // nil: Service answers them
	Verifier  Verifier
	Issuer    string // of tokens: where clients that have none are told to look for its openid-configuration
	// TLS has the certificate; nil: clear text alone, which is taken from this machine only.
	TLS *tls.Config
	// Sessions is how many clients may be logged in, SessionsPerAnalyst how many of one analyst; 0: [DefaultSessions] and
	// [DefaultSessionsPerAnalyst].
	Sessions, SessionsPerAnalyst int
	Idle                         time.Duration // after which a session ends whose client says nothing; 0: [DefaultIdle]
	Catalog                      Catalog       // nil: queries about names and types are refused
	Log                          *slog.Logger  // nil: discarded
	// Observe is told the SQLSTATE of each question that was answered, "" where it was not refused; nil: nobody is.
	Observe func(sqlstate string)

	patience time.Duration // for a client to take what it asked for; 0: writePatience
}

// The defaults of [Config]: PostgreSQL's own default is 100 connections, and pools of BI servers take some dozens each.
const (
	DefaultSessions           = 500
	DefaultSessionsPerAnalyst = 64
	DefaultIdle               = 30 * time.Minute
)

// Server speaks the protocol with many clients. It is safe for concurrent use.
type Server struct {
	config    Config
	strangers *connlimit.Limit // connections whose user is not known yet

	mu       sync.Mutex
	sessions map[uint32]*session // by the number that clients know as the process id
	analysts map[string]int      // sessions of each
	draining bool
	running  sync.WaitGroup // connections
}

// New checks that nothing is missing.
func New(c Config) (*Server, error) {
	if c.Service == nil || c.Verifier == nil {
		return nil, errors.New("pgwire: a part of the server is missing")
	}
	if c.Idle == 0 {
		c.Idle = DefaultIdle
	}
	if c.Sessions < 0 || c.SessionsPerAnalyst < 0 || c.Idle < 0 {
		return nil, errors.New("pgwire: numbers of sessions are positive")
	}
	if c.Sessions == 0 {
		c.Sessions = DefaultSessions
	}
	if c.SessionsPerAnalyst == 0 {
		c.SessionsPerAnalyst = DefaultSessionsPerAnalyst
	}
	if c.TLS != nil {
		c.TLS = c.TLS.Clone()
		c.TLS.NextProtos = []string{protocolName}
		c.TLS.MinVersion = max(c.TLS.MinVersion, tls.VersionTLS12)
	}
	if c.Questions == nil {
		c.Questions = c.Service
	}
	if c.patience == 0 {
		c.patience = writePatience
	}
	if c.Observe == nil {
		c.Observe = func(string) {}
	}
	if c.Log == nil {
		c.Log = slog.New(slog.DiscardHandler)
	}
	return &Server{config: c, strangers: connlimit.New(maxStrangers), sessions: map[uint32]*session{},
		analysts: map[string]int{}}, nil
}

// Connections is how many clients a server holds at most.
func (s *Server) Connections() int { return s.config.Sessions + maxStrangers }

// LoggedIn is how many clients are logged in.
func (s *Server) LoggedIn() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return len(s.sessions)
}

const (
	drain      = 30 * time.Second // for statements that run when the server is told to stop
	acceptRest = 50 * time.Millisecond
)

// Serve answers on the listener until the context ends. Then it takes nobody new, ends idle sessions with 57P01, lets running statements
// finish, for 30 s at most, and ends their sessions in the same way.
func (s *Server) Serve(ctx context.Context, listener net.Listener) error {
	hard, end := context.WithCancel(context.WithoutCancel(ctx))
	defer end()
	stop := context.AfterFunc(ctx, func() {
		_ = listener.Close()
		s.drain()
	})
	defer stop()
	for {
		conn, err := listener.Accept()
		if err != nil {
			if ctx.Err() != nil {
				break
			}
			if errors.Is(err, net.ErrClosed) {
				return err
			}
			s.config.Log.WarnContext(ctx, "a connection could not be accepted", "cause", err.Error())
			time.Sleep(acceptRest) // out of descriptors, most likely: some sessions end
			continue
		}
		s.running.Go(func() { s.handle(hard, conn) })
	}
	done := make(chan struct{})
	go func() { s.running.Wait(); close(done) }()
	patience := time.NewTimer(drain)
	defer patience.Stop()
	select {
	case <-done:
	case <-patience.C:
		end() // closes what is still open
		<-done
	}
	return nil
}

// drain makes every session end as soon as it is idle.
func (s *Server) drain() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.draining = true
	for _, c := range s.sessions {
		c.wake()
	}
}

// handle is the life of one connection.
func (s *Server) handle(ctx context.Context, conn net.Conn) {
	ctx, end := context.WithCancel(ctx)
	defer end()
	raw := conn
	context.AfterFunc(ctx, func() { _ = raw.Close() })
	if !s.strangers.Take(conn) {
		deny(conn, tooManyStrangers())
		return
	}
	c, refused := s.shielded(ctx, conn)
	s.strangers.Free(conn)
	if refused != nil {
		s.config.Log.InfoContext(ctx, "a connection was refused", "sqlstate", refused.state)
	}
	if c == nil {
		return
	}
	defer s.leave(c)
	c.serve(ctx)
}

// shielded introduces a client; a panic ends the connection, not the gateway.
func (s *Server) shielded(ctx context.Context, conn net.Conn) (c *session, refused *refusal) {
	defer func() {
		if p := recover(); p != nil {
			err := fault.Panicked(p)
			s.config.Log.ErrorContext(ctx, "a connection ended", "code", string(err.Code), "cause", fault.Cause(err))
			c, refused = nil, fatal(refusalOf(err, nil))
			deny(conn, refused)
		}
	}()
	return s.introduce(ctx, conn)
}

// enter gives a session its place, its number and its secret.
func (s *Server) enter(c *session, keyBytes int) *refusal {
	s.mu.Lock()
	defer s.mu.Unlock()
	switch {
	case s.draining:
		return stopping()
	case s.analysts[c.who.Subject] >= s.config.SessionsPerAnalyst:
		return tooManySessions("you have too many connections already")
	case !s.hasRoom(c.who.Subject) && !s.makeRoom(c.who.Subject):
		return tooManySessions("too many clients are connected already")
	}
	for c.pid == 0 || s.sessions[c.pid] != nil { // a number that says nothing of how many there are, of nine digits at most
		var text [4]byte
		_, _ = rand.Read(text[:])
		c.pid = binary.BigEndian.Uint32(text[:]) >> 3
	}
	c.started, c.application = time.Now(), c.settings.get(setApplication)
	c.secret = make([]byte, keyBytes)
	_, _ = rand.Read(c.secret)
	s.sessions[c.pid] = c
	s.analysts[c.who.Subject]++
	c.memory = s.config.Service.Memory().Open(c.who.Subject)
	return nil
}

// hasRoom reports whether an analyst may open a session more: the last tenth of all is for who has none. The lock is held.
func (s *Server) hasRoom(subject string) bool {
	places := s.config.Sessions
	if s.analysts[subject] > 0 {
		places -= places / 10
	}
	return len(s.sessions) < places
}

// makeRoom ends the session that is idle longest of the analyst who has most: one with more than the newcomer, or the newcomer. It reports
// false when nobody is to give way, as all of theirs work. The lock is held.
func (s *Server) makeRoom(subject string) bool {
	var longest *session
	var since time.Time
	for _, c := range s.sessions {
		n := s.analysts[c.who.Subject]
		if c.who.Subject != subject && n <= s.analysts[subject] {
			continue
		}
		idle := c.idleSince()
		if idle.IsZero() {
			continue
		}
		if longest != nil {
			if most := s.analysts[longest.who.Subject]; n < most || n == most && !idle.Before(since) {
				continue
			}
		}
		longest, since = c, idle
	}
	if longest == nil {
		return false
	}
	s.forget(longest)
	longest.giveWay()
	return true
}

// forget takes a session's place, once. The lock is held.
func (s *Server) forget(c *session) {
	if s.sessions[c.pid] != c {
		return
	}
	delete(s.sessions, c.pid)
	if s.analysts[c.who.Subject]--; s.analysts[c.who.Subject] == 0 {
		delete(s.analysts, c.who.Subject)
	}
}

// leave gives the place back.
func (s *Server) leave(c *session) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.forget(c)
	c.memory.Close()
}

// cancel stops what a session runs, if the secret is its own. Nobody learns whether it was.
func (s *Server) cancel(ctx context.Context, pid uint32, secret []byte) {
	s.mu.Lock()
	c := s.sessions[pid]
	s.mu.Unlock()
	if c != nil && subtle.ConstantTimeCompare(c.secret, secret) == 1 {
		c.cancel(ctx)
	}
}
