package pgwire

import (
	"context"
	"errors"
	"io"
	"net"
	"os"
	"slices"
	"strings"
	"sync"
	"time"
	"unicode/utf8"

	"github.com/jackc/pgx/v5/pgproto3"

	"noisegate.example/gateway/auth"
	"noisegate.example/gateway/internal/held"
	"noisegate.example/internal/fault"
	"noisegate.example/sqlrewrite/statement"
)

// The limits of one session.
const (
	maxMessage    = 1 << 20 // bytes
	maxStatements = 1000    // prepared
	maxPortals    = 1000    // portals and cursors
	maxKept       = 64 << 20
	maxSmall      = 64 << 10 // of statements and values, which are kept whatever memory there is
	flushAt       = 64 << 10
	writePatience = time.Minute // for a client to take what it asked for
)

// session is one client that is known. Only [session.wake] and [session.cancel] may be called by others.
type session struct {
	server  *Server
	conn    *ahead
	backend *pgproto3.Backend
	who     auth.Principal
	token   string
	dataset string
	version int64 // of the policy by which the analyst has an account
	pid     uint32
	secret  []byte

	settings   *settings
	codec      codec
	statements map[string]*prepared
	portals    map[string]*portal
	tx         transaction
	several    bool // statements share the message that is answered: to cursors, a transaction
	skipping   bool // what follows an error of the extended protocol, until Sync
	pending    int  // bytes that were not sent yet
	memory     *held.Share
	broken     error
	exposed    exposed

	started time.Time

	mu          sync.Mutex
	application string             // as others of the analyst's sessions see it
	woken       bool               // there is a reason to end
	outlived    bool               // which is that the session was idle for too long
	idle        time.Time          // since when it waits for its client; zero: it works
	running     string             // the name of the question that runs; "" for none
	stop        context.CancelFunc // of the query about catalogs that runs; nil for none
}

// settle makes the session's settings of the start-up packet's.
func (c *session) settle(ctx context.Context, parameters []parameter) *refusal {
	version := shownVersion
	if facts := c.server.facts(ctx, c.dataset); facts != nil {
		version = facts.Version
	}
	c.codec, c.statements, c.portals = newCodec(), map[string]*prepared{}, map[string]*portal{}
	c.settings = newSettings(map[string]string{"session_authorization": c.who.Subject, "server_version": version,
		"server_version_num": versionNumber(version)})
	for _, p := range parameters {
		if refused := c.settings.start(p.name, p.value); refused != nil {
			return fatal(refused)
		}
	}
	return nil
}

// wake ends the session as soon as it is idle.
func (c *session) wake() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.woken = true
	_ = c.conn.SetReadDeadline(time.Unix(1, 0))
}

// giveWay ends an idle session whose place somebody else needs.
func (c *session) giveWay() {
	c.mu.Lock()
	c.outlived = true
	c.mu.Unlock()
	c.wake()
}

// waits says that the session waits for its client, and for how long it does.
func (c *session) waits() {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.idle = time.Now(); !c.woken {
		_ = c.conn.SetReadDeadline(c.idle.Add(c.server.config.Idle))
	}
}

// works says that the client has said what it wants.
func (c *session) works() {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.idle = (time.Time{}); !c.woken {
		_ = c.conn.SetReadDeadline(time.Time{})
	}
}

// idleSince is since when a session waits for its client; zero: it works, or ends.
func (c *session) idleSince() time.Time {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.woken {
		return time.Time{}
	}
	return c.idle
}

// ending is why a session ends whose client did not say so.
func (c *session) ending() *refusal {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.woken && !c.outlived {
		return stopping()
	}
	return idleTooLong(c.outlived)
}

func (c *session) isWoken() bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.woken
}

// unhurried takes away the deadlines of a stranger, unless the session is to end already.
func (c *session) unhurried() {
	c.mu.Lock()
	defer c.mu.Unlock()
	if _ = c.conn.SetDeadline(time.Time{}); c.woken {
		_ = c.conn.SetReadDeadline(time.Unix(1, 0))
	}
}

// cancel stops the question that runs, at the next boundary of its schedule, or the query about catalogs, at once.
func (c *session) cancel(ctx context.Context) {
	c.mu.Lock()
	name, stop := c.running, c.stop
	c.mu.Unlock()
	if stop != nil {
		stop()
	}
	if name != "" {
		_, _ = c.server.config.Service.Cancel(ctx, c.who, name)
	}
}

// runs notes which question runs, for [session.cancel].
func (c *session) runs(name string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.running = name
}

// serve is the session from the first word to the last.
func (c *session) serve(ctx context.Context) {
	defer c.conn.Close()
	c.backend.SetMaxBodyLen(maxMessage)
	c.unhurried()
	c.send(&pgproto3.AuthenticationOk{})
	for _, p := range c.settings.reported() {
		c.send(&pgproto3.ParameterStatus{Name: p.name, Value: clean(p.value)})
	}
	c.send(&pgproto3.BackendKeyData{ProcessID: c.pid, SecretKey: c.secret})
	c.ready()
	for c.broken == nil {
		message, refused := c.receive()
		if refused == nil && message != nil {
			refused = c.shielded(ctx, message)
		}
		switch {
		case refused != nil:
			c.send(refused.message(true))
			c.flush()
			return
		case message == nil:
			return
		}
	}
}

// receive gives the next message; neither a message nor a refusal when the client is gone.
func (c *session) receive() (message pgproto3.FrontendMessage, refused *refusal) {
	defer func() {
		if recover() != nil { // of the decoder
			message, refused = nil, violation("a message could not be read")
		}
	}()
	c.waits()
	message, err := c.backend.Receive()
	c.works()
	if err == nil {
		if _, last := message.(*pgproto3.Terminate); last {
			return nil, nil
		}
		return message, nil
	}
	var long *pgproto3.ExceededMaxBodyLenErr
	var network net.Error
	switch {
	case c.isWoken(), errors.Is(err, os.ErrDeadlineExceeded):
		return nil, c.ending()
	case errors.As(err, &long):
		return nil, fatal(messageTooLong(maxMessage))
	case errors.As(err, &network), isGone(err):
		return nil, nil
	default:
		return nil, violation("a message could not be read")
	}
}

// shielded answers one message; a panic ends the session, not the gateway.
func (c *session) shielded(ctx context.Context, message pgproto3.FrontendMessage) (refused *refusal) {
	defer func() {
		if p := recover(); p != nil {
			err := fault.Panicked(p)
			c.server.config.Log.ErrorContext(ctx, "a session ended", "code", string(err.Code), "cause", fault.Cause(err))
			refused = fatal(refusalOf(err, nil))
		}
	}()
	return c.answer(ctx, message)
}

// answer answers one message. What it gives back ends the session.
func (c *session) answer(ctx context.Context, message pgproto3.FrontendMessage) *refusal {
	switch m := message.(type) {
	case *pgproto3.Sync:
		c.sync()
		return nil
	case *pgproto3.Flush:
		if !c.skipping {
			c.flush()
		}
		return nil
	case *pgproto3.CopyData, *pgproto3.CopyDone, *pgproto3.CopyFail:
		return nil // of a COPY that was refused: ignored, as PostgreSQL does
	case *pgproto3.Query, *pgproto3.Parse, *pgproto3.Bind, *pgproto3.Describe, *pgproto3.Execute, *pgproto3.Close, *pgproto3.FunctionCall:
		if c.skipping {
			return nil
		}
		switch m := m.(type) {
		case *pgproto3.Query:
			return c.simple(ctx, m.String)
		case *pgproto3.FunctionCall: // there are no functions to call
			c.fail(unsupported("the function call message"))
			c.ready()
			return nil
		default:
			return c.extended(ctx, m)
		}
	default:
		return violation("this message is not expected here")
	}
}

// stillValid reads the token again: its time may be over, and its key withdrawn. Where the policy has changed it also looks again
// whether the analyst has an account: while that cannot be told, statements are refused and the session stays.
func (c *session) stillValid(ctx context.Context) *refusal {
	who, err := c.server.config.Verifier.Verify(ctx, c.token)
	if err == nil && (who.Subject != c.who.Subject || !who.Has(auth.Analyst)) {
		err = fault.AuthInvalid(nil)
	}
	if err != nil {
		return expired(err)
	}
	if snapshot, err := c.server.config.Service.Snapshot(c.dataset); err == nil && snapshot.Version != c.version {
		refused := c.server.admit(ctx, c)
		if refused != nil && refused.state != stateNoDatabase {
			stays := *refused
			stays.ends = false
			return &stays
		}
		return refused
	}
	return nil
}

// send puts a message into the buffer, which goes out when it is large, or when the client waits.
func (c *session) send(message pgproto3.BackendMessage) {
	if c.broken != nil {
		return
	}
	c.backend.Send(message)
	c.pending += sizeOf(message)
	if c.pending >= flushAt {
		c.flush()
	}
}

// sizeOf is about how many bytes a message has.
func sizeOf(message pgproto3.BackendMessage) int {
	const each, field = 32, 32
	size := each
	switch m := message.(type) {
	case *pgproto3.DataRow:
		for _, v := range m.Values {
			size += 4 + len(v)
		}
	case *pgproto3.CopyData:
		size += len(m.Data)
	case *pgproto3.RowDescription:
		for _, f := range m.Fields {
			size += field + len(f.Name)
		}
	case *pgproto3.ParameterDescription:
		size += 4 * len(m.ParameterOIDs)
	case *pgproto3.ErrorResponse:
		size += len(m.Message) + len(m.Detail) + len(m.Hint)
	case *pgproto3.NoticeResponse:
		size += len(m.Message) + len(m.Detail)
	}
	return size
}

// flush sends what is in the buffer. A client that does not take it is given up.
func (c *session) flush() {
	c.pending = 0
	if c.broken != nil {
		return
	}
	_ = c.conn.SetWriteDeadline(time.Now().Add(c.server.config.patience))
	c.broken = c.backend.Flush()
}

// ready ends a cycle: it sends what changed, and that the session waits for the next message.
func (c *session) ready() {
	for _, p := range c.settings.news() {
		if p.name == setApplication {
			c.mu.Lock()
			c.application = p.value
			c.mu.Unlock()
		}
		c.send(&pgproto3.ParameterStatus{Name: p.name, Value: clean(p.value)})
	}
	c.send(&pgproto3.ReadyForQuery{TxStatus: c.tx.status()})
	c.flush()
	c.memory.Resize(int64(c.size()))
}

// fail sends an error, which fails the transaction.
func (c *session) fail(refused *refusal) {
	c.send(refused.message(false))
	c.tx.fail()
}

// notice sends a message along with the answer.
func (c *session) notice(severity, state, text, detail string) {
	least := c.settings.get(setMinMessages)
	if least == "error" || least == "warning" && severity == "NOTICE" {
		return
	}
	c.send(&pgproto3.NoticeResponse{Severity: severity, SeverityUnlocalized: severity, Code: state, Message: clean(text),
		Detail: clean(detail)})
}

func (c *session) warn(state, text string) { c.notice("WARNING", state, text, "") }

// exposed are the tables that exist for the analyst, as of one version of the policy.
type exposed struct {
	version int64
	tables  []statement.TableName
	columns map[string][]string // by the column's name: the types that columns of this name have
}

// names are what the relations of a message can be. They follow the policy in force; without one every table is unknown, which
// the service says.
func (c *session) names() statement.Names {
	snapshot, err := c.server.config.Service.Snapshot(c.dataset)
	if err != nil {
		return statement.Names{Database: c.dataset, SearchPath: c.settings.schemas()}
	}
	if c.exposed.columns == nil || c.exposed.version != snapshot.Version {
		c.exposed = exposed{version: snapshot.Version, columns: map[string][]string{}}
		for _, t := range snapshot.Shown() {
			c.exposed.tables = append(c.exposed.tables, statement.TableName{Schema: t.Schema, Name: t.Name})
			for _, column := range t.Columns {
				if name := string(column.Type); column.Exposed && !slices.Contains(c.exposed.columns[column.Name], name) {
					c.exposed.columns[column.Name] = append(c.exposed.columns[column.Name], name)
				}
			}
		}
	}
	return statement.Names{Database: c.dataset, Exposed: c.exposed.tables, SearchPath: c.settings.schemas()}
}

// read splits a message into statements.
func (c *session) read(message string) ([]statement.Statement, *refusal) {
	if strings.ContainsRune(message, 0) {
		return nil, refusef(stateText, "a statement has a zero byte")
	}
	if !utf8.ValidString(message) {
		return nil, refusef(stateText, "invalid byte sequence for encoding \"UTF8\" in a statement")
	}
	list, err := statement.Split(message, c.names())
	if err != nil {
		return nil, ofStatement(err)
	}
	return list, nil
}

// ofStatement is a refusal of the text itself.
func ofStatement(err error) *refusal {
	var known *statement.Refusal
	if !errors.As(err, &known) {
		return refusalOf(err, nil)
	}
	return &refusal{state: known.SQLState, text: known.Message, hint: known.Hint, position: known.Position}
}

func isGone(err error) bool {
	return errors.Is(err, net.ErrClosed) || errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF)
}
