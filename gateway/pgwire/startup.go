package pgwire

import (
	"bytes"
	"context"
	"crypto/tls"
	"encoding/binary"
	"errors"
	"io"
	"net"
	"slices"
	"strings"
	"time"

	"github.com/jackc/pgx/v5/pgproto3"

	"noisegate.example/internal/fault"
)

// What a client may use up before anybody knows who it is.
const (
	maxStrangers     = 64 // connections at a time
	strangerPatience = 15 * time.Second
	maxPackets       = 4        // start-up packets: GSSAPI, TLS, and the one that counts
	maxPacket        = 16 << 10 // bytes; PostgreSQL takes 10,000, a token in a password message has up to 8 KiB
)

// Numbers of the protocol (PostgreSQL's documentation, "Message Formats").
const (
	protocolName   = "postgresql" // of ALPN
	majorVersion   = 3
	newestMinor    = 2
	cancelCode     = 1234<<16 | 5678
	tlsCode        = 1234<<16 | 5679
	gssCode        = 1234<<16 | 5680
	tlsRecord      = 0x16 // the first byte of a TLS handshake
	shortKey       = 4    // bytes of a cancel key before 3.2
	longKey        = 32
	maxCancelKey   = 256
	lengthBytes    = 4
	minPacketBytes = 8 // length and code
)

// readPacket reads a start-up packet and not a byte more: what follows an SSLRequest belongs to TLS, and whatever came before
// the handshake must not count as said inside it. Of the packet, the bytes in head were read before.
func readPacket(r io.Reader, head []byte) (body []byte, err error) {
	length := make([]byte, lengthBytes)
	copy(length, head)
	if _, err := io.ReadFull(r, length[len(head):]); err != nil {
		return nil, err
	}
	n := binary.BigEndian.Uint32(length)
	if n < minPacketBytes || n > maxPacket {
		return nil, errBadPacket
	}
	body = make([]byte, n-lengthBytes)
	_, err = io.ReadFull(r, body)
	return body, err
}

var errBadPacket = errors.New("pgwire: not a start-up packet")

type parameter struct{ name, value string }

// hello is a start-up packet that asks for a session.
type hello struct {
	minor      uint32 // of the protocol, at most ours
	negotiate  bool   // the client asked for more than we speak
	unknown    []string
	parameters []parameter // in order, those of options among them
	user       string
	database   string
	replicates bool
}

// parseHello reads the packet of a session: its version and pairs of texts that end in a zero byte.
func parseHello(body []byte) (*hello, error) {
	code := binary.BigEndian.Uint32(body)
	if code>>16 != majorVersion {
		return nil, errVersion
	}
	h := &hello{minor: code & 0xffff}
	if h.minor > newestMinor {
		h.minor, h.negotiate = newestMinor, true
	}
	rest := body[lengthBytes:]
	for {
		name, after, ok := bytes.Cut(rest, []byte{0})
		if !ok {
			return nil, errBadPacket
		}
		if len(name) == 0 {
			if len(after) > 0 {
				return nil, errBadPacket
			}
			break
		}
		value, after, ok := bytes.Cut(after, []byte{0})
		if !ok {
			return nil, errBadPacket
		}
		rest = after
		if err := h.take(string(name), string(value)); err != nil {
			return nil, err
		}
	}
	if h.database == "" {
		h.database = h.user
	}
	return h, nil
}

var errVersion = errors.New("pgwire: another version of the protocol")

func (h *hello) take(name, value string) error {
	switch {
	case name == "user":
		h.user = value
	case name == "database":
		h.database = value
	case name == "replication":
		h.replicates = !slices.Contains([]string{"", "false", "off", "no", "0"}, strings.ToLower(value))
	case name == "options":
		options, err := splitOptions(value)
		h.parameters = append(h.parameters, options...)
		return err
	case strings.HasPrefix(name, "_pq_."):
		h.unknown, h.negotiate = append(h.unknown, name), true
	default:
		h.parameters = append(h.parameters, parameter{name, value})
	}
	return nil
}

// splitOptions reads what would be a command line of the server: -c name=value, -cname=value and --name=value, where a
// backslash keeps the character after it.
func splitOptions(text string) ([]parameter, error) {
	var words []string
	var word strings.Builder
	inWord := false
	for i := 0; i < len(text); i++ {
		switch c := text[i]; {
		case c == '\\' && i+1 < len(text):
			i++
			word.WriteByte(text[i])
			inWord = true
		case strings.IndexByte(" \t\n\r\v\f", c) >= 0:
			if inWord {
				words = append(words, word.String())
			}
			word.Reset()
			inWord = false
		default:
			word.WriteByte(c)
			inWord = true
		}
	}
	if inWord {
		words = append(words, word.String())
	}
	var list []parameter
	for i := 0; i < len(words); i++ {
		assignment, short := strings.CutPrefix(words[i], "-c")
		if short && assignment == "" {
			if i++; i == len(words) {
				return nil, errOptions
			}
			assignment = words[i]
		}
		if !short {
			var long bool
			if assignment, long = strings.CutPrefix(words[i], "--"); !long {
				return nil, errOptions
			}
			assignment = strings.ReplaceAll(assignment, "-", "_")
		}
		name, value, ok := strings.Cut(assignment, "=")
		if !ok || name == "" {
			return nil, errOptions
		}
		list = append(list, parameter{name, value})
	}
	return list, nil
}

var errOptions = errors.New("pgwire: options are -c name=value")

// introduce brings a connection to a session, or says why not. Whatever a stranger does, it ends within 15 s.
func (s *Server) introduce(ctx context.Context, conn net.Conn) (*session, *refusal) {
	_ = conn.SetDeadline(time.Now().Add(strangerPatience))
	ctx, cancel := context.WithTimeout(ctx, strangerPatience)
	defer cancel()
	conn, h, refused := s.greet(ctx, conn)
	if refused != nil {
		deny(conn, refused)
		return nil, refused
	}
	if h == nil {
		return nil, nil
	}
	c, refused := s.login(ctx, conn, h)
	if refused != nil {
		deny(conn, refused)
		return nil, refused
	}
	return c, nil
}

// greet reads start-up packets up to the one that asks for a session; nil for one that asks for something else and got it,
// and for a client that is gone or speaks something else.
func (s *Server) greet(ctx context.Context, conn net.Conn) (net.Conn, *hello, *refusal) {
	head := make([]byte, 1)
	encrypted := false
	for packet := range maxPackets {
		if _, err := io.ReadFull(conn, head); err != nil {
			return conn, nil, nil
		}
		if packet == 0 && head[0] == tlsRecord && s.config.TLS != nil {
			var err error
			if conn, err = s.handshake(ctx, &prefixed{Conn: conn, head: bytes.Clone(head)}, true); err != nil {
				return conn, nil, nil
			}
			encrypted = true
			continue
		}
		body, err := readPacket(conn, head)
		if errors.Is(err, errBadPacket) {
			return conn, nil, violation("this is not a start-up packet")
		}
		if err != nil {
			return conn, nil, nil
		}
		switch code := binary.BigEndian.Uint32(body); code {
		case cancelCode:
			if n := len(body) - 2*lengthBytes; n >= 1 && n <= maxCancelKey {
				s.cancel(ctx, binary.BigEndian.Uint32(body[lengthBytes:]), body[2*lengthBytes:])
			}
			return conn, nil, nil
		case gssCode, tlsCode:
			if len(body) != lengthBytes || encrypted {
				return conn, nil, violation("this is not a start-up packet")
			}
			if code == gssCode || s.config.TLS == nil {
				if _, err := conn.Write([]byte{'N'}); err != nil {
					return conn, nil, nil
				}
				continue
			}
			if _, err := conn.Write([]byte{'S'}); err != nil {
				return conn, nil, nil
			}
			if conn, err = s.handshake(ctx, conn, false); err != nil {
				return conn, nil, nil
			}
			encrypted = true
		default:
			h, err := parseHello(body)
			switch {
			case errors.Is(err, errVersion):
				return conn, nil, unsupportedVersion()
			case errors.Is(err, errOptions):
				return conn, nil, badOptions()
			case err != nil:
				return conn, nil, violation("this is not a start-up packet")
			case !encrypted && !isLocal(conn):
				return conn, nil, clearText()
			}
			return conn, h, nil
		}
	}
	return conn, nil, violation("there were too many start-up packets")
}

// handshake speaks TLS. A client that begins with it must say which protocol it means, so that no other server's client can
// be led here (ALPACA).
func (s *Server) handshake(ctx context.Context, conn net.Conn, direct bool) (net.Conn, error) {
	secured := tls.Server(conn, s.config.TLS)
	if err := secured.HandshakeContext(ctx); err != nil {
		return conn, err
	}
	if direct && secured.ConnectionState().NegotiatedProtocol != protocolName {
		return conn, errBadPacket
	}
	return secured, nil
}

// prefixed gives back what was read of a connection already.
type prefixed struct {
	net.Conn
	head []byte
}

// Read implements [net.Conn].
func (p *prefixed) Read(b []byte) (int, error) {
	if len(p.head) > 0 {
		n := copy(b, p.head)
		p.head = p.head[n:]
		return n, nil
	}
	return p.Conn.Read(b)
}

// isLocal reports whether a connection stays on this machine: a unix socket, or the loopback interface on both ends.
func isLocal(conn net.Conn) bool {
	return isLocalAddr(conn.LocalAddr()) && isLocalAddr(conn.RemoteAddr())
}

func isLocalAddr(addr net.Addr) bool {
	switch a := addr.(type) {
	case *net.UnixAddr:
		return true
	case *net.TCPAddr:
		return a.IP.IsLoopback()
	default:
		return false
	}
}

// login finds out who asks, and gives them a session.
func (s *Server) login(ctx context.Context, conn net.Conn, h *hello) (*session, *refusal) {
	if h.replicates {
		return nil, unsupported("replication")
	}
	if h.user == "" {
		return nil, noUser()
	}
	client := &ahead{Conn: conn}
	backend := pgproto3.NewBackend(client, conn)
	backend.SetMaxBodyLen(maxPacket)
	if h.negotiate {
		backend.Send(&pgproto3.NegotiateProtocolVersion{NewestMinorProtocol: majorVersion<<16 | h.minor, UnrecognizedOptions: h.unknown})
	}
	oauth, refused := h.method(s.config.Issuer)
	if refused != nil {
		return nil, refused
	}
	ask := s.password
	if oauth {
		ask = s.bear
	}
	c := &session{server: s, conn: client, backend: backend, dataset: h.database}
	if c.token, c.who, refused = ask(ctx, backend, h.user); refused != nil || c.token == "" {
		return nil, refused
	}
	if refused := s.admit(ctx, c); refused != nil {
		return nil, refused
	}
	keyBytes := shortKey
	if h.minor >= newestMinor {
		keyBytes = longKey
	}
	if refused := c.settle(ctx, h.parameters); refused != nil {
		return nil, refused
	}
	if refused := s.enter(c, keyBytes); refused != nil {
		return nil, refused
	}
	return c, nil
}

// admit says whether the database is the analyst's, by the policy in force.
func (s *Server) admit(ctx context.Context, c *session) *refusal {
	var version int64
	if snapshot, err := s.config.Service.Snapshot(c.dataset); err == nil {
		version = snapshot.Version
	}
	_, err := s.config.Service.Budget(ctx, c.who, c.dataset)
	switch fault.CodeOf(err) {
	case "":
		c.version = version // or an older one, by which it is asked again
		return nil
	case fault.CodeUnknownDataset, fault.CodeBudgetNoAccount, fault.CodeRequestMissingField:
		return noDatabase(c.dataset)
	default:
		return fatal(refusalOf(err, nil))
	}
}

// lost is what becomes of a client that did not send what was due: nothing, or a word about a message that is too long.
func lost(err error) *refusal {
	var long *pgproto3.ExceededMaxBodyLenErr
	if errors.As(err, &long) {
		return fatal(messageTooLong(maxPacket))
	}
	return nil
}

// deny says why there is no session, for as long as a client that does not read may take, and closes the connection.
func deny(conn net.Conn, why *refusal) {
	const patience = time.Second
	_ = conn.SetWriteDeadline(time.Now().Add(patience))
	if text, err := why.message(true).Encode(nil); err == nil {
		_, _ = conn.Write(text)
	}
	_ = conn.Close()
}
