// Package held bounds the memory that answers take while they are computed, encoded, kept for a cursor, or not read yet by their client.
//
// It knows how many bytes each analyst's answers take, and shares one budget among analysts. It does not know what an answer is, or
// whether it was paid for.
package held

import "sync"

// An analyst takes n bytes more where own + n <= B - all: k greedy ones leave B/(k+1) for the next, whatever k is. Besides, each has
// [Always] of a reserve of B/4, so that a small answer is never refused because of others'.

// Always is the number of bytes that an analyst may take from the reserve.
const Always = 1 << 20

// Budget is the memory of all answers. It is safe for concurrent use.
type Budget struct {
	bytes, reserve int64
	work           chan struct{}

	mu      sync.Mutex
	all     int64 // taken of the budget, the reserve apart
	spare   int64 // of the reserve
	holders map[string]*holder
}

// holder is one analyst with shares.
type holder struct{ own, spare, shares int64 }

// workers bounds how many answers are brought into another form at a time: decoded, an answer takes several times its bytes.
const workers = 2

// New makes a budget of so many bytes, and a reserve of a quarter of it besides.
func New(bytes int64) *Budget {
	return &Budget{bytes: bytes, reserve: bytes / 4, work: make(chan struct{}, workers), holders: map[string]*holder{}}
}

// Bytes is the budget, without its reserve.
func (b *Budget) Bytes() int64 { return b.bytes }

// Taken is the number of bytes that all answers hold.
func (b *Budget) Taken() int64 {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.all + b.spare
}

// Work runs what brings an answer into another form, a few at a time.
func (b *Budget) Work(f func()) {
	b.work <- struct{}{}
	defer func() { <-b.work }()
	f()
}

// Share is the memory that one answer or session holds. A nil share takes nothing, and gets everything. It is safe for concurrent
// use.
type Share struct {
	of         *Budget
	subject    string
	own, spare int64
	open       bool
}

// Open makes an empty share of an analyst's. It is closed once.
func (b *Budget) Open(subject string) *Share {
	b.mu.Lock()
	defer b.mu.Unlock()
	h := b.holders[subject]
	if h == nil {
		h = &holder{}
		b.holders[subject] = h
	}
	h.shares++
	return &Share{of: b, subject: subject, open: true}
}

// Fit makes the share so many bytes large; it reports false, and changes nothing, where the analyst may not take what is missing.
func (s *Share) Fit(bytes int64) bool {
	if s == nil {
		return true
	}
	s.of.mu.Lock()
	defer s.of.mu.Unlock()
	more := bytes - s.own - s.spare
	h := s.of.holders[s.subject]
	switch b := s.of; {
	case !s.open:
		return true
	case more <= 0, h.own+more <= b.bytes-b.all:
		s.become(bytes)
	case h.spare+more <= Always && b.spare+more <= b.reserve:
		s.spare, h.spare, b.spare = s.spare+more, h.spare+more, b.spare+more
	default:
		return false
	}
	return true
}

// Resize makes the share so many bytes large, whatever there is: of what was paid for, which is not refused.
func (s *Share) Resize(bytes int64) {
	if s == nil {
		return
	}
	s.of.mu.Lock()
	defer s.of.mu.Unlock()
	if s.open {
		s.become(bytes)
	}
}

// Beside opens another share of the same analyst's, so many bytes large whatever there is: of what is made of an answer.
func (s *Share) Beside(bytes int64) *Share {
	beside := s.of.Open(s.subject)
	beside.Resize(bytes)
	return beside
}

// Work is [Budget.Work].
func (s *Share) Work(f func()) { s.of.Work(f) }

// Close gives everything back. Closing again does nothing.
func (s *Share) Close() {
	if s == nil {
		return
	}
	b := s.of
	b.mu.Lock()
	defer b.mu.Unlock()
	if !s.open {
		return
	}
	s.become(0)
	s.open = false
	if h := b.holders[s.subject]; h.shares == 1 {
		delete(b.holders, s.subject)
	} else {
		h.shares--
	}
}

// become changes the share's size; the reserve is given back first. The lock is held.
func (s *Share) become(bytes int64) {
	b, h := s.of, s.of.holders[s.subject]
	spare := min(s.spare, max(0, bytes-s.own))
	if bytes > s.own+s.spare { // it grows, of the budget
		spare = s.spare
	}
	own := bytes - spare
	h.own, b.all = h.own+own-s.own, b.all+own-s.own
	h.spare, b.spare = h.spare+spare-s.spare, b.spare+spare-s.spare
	s.own, s.spare = own, spare
}
