package gateway

import (
	"math"
	"runtime"
	"runtime/debug"

	"noisegate.example/gateway/internal/held"
	"noisegate.example/internal/fault"
)

// maxFreeAnswer caps the bytes of an answer that nobody pays for.
const maxFreeAnswer = 8 << 20

// unbounded is the reservation for a plan that does not bound its answer: the number of private keys depends on rows.
const unbounded = 8 << 20

// DefaultAnswers is the memory for answers where none is configured: a quarter of GOMEMLIMIT, else 128 MiB.
func DefaultAnswers() int64 {
	if limit := debug.SetMemoryLimit(-1); limit < math.MaxInt64 {
		return limit / 4
	}
	return 128 << 20
}

// Memory is the budget of all answers of all servers.
func (s *Service) Memory() *held.Budget { return s.memory }

// reserve takes memory for the answer of a question, before it is charged: what its plan bounds, but no more than an analyst gets who is
// alone, nor, where nothing bounds it, than questions in all places get at once. Once a question is charged it is not refused for memory,
// since how much its answer takes depends on rows.
func (s *Service) reserve(memory *held.Share, q *prepared) error {
	unknown := min(unbounded, s.memory.Bytes()/(2*int64(s.questions.Places)))
	size := int64(0)
	if q.public != nil {
		size = unknown
	} else {
		for _, block := range q.plan.Blocks() {
			switch n := block.AnswerBytes(); {
			case n > 0:
				size += n
			case block.NeedsData():
				size += unknown
			}
		}
	}
	if !memory.Fit(min(size, s.memory.Bytes()/2)) {
		return fault.RequestMemory()
	}
	return nil
}

// holding gives an answer the memory that it takes until it is released, or nobody knows it any more. One that was not charged now may be
// refused: it is there when it is asked for again.
func (a *Answer) holding(memory *held.Share, uncharged bool) (*Answer, error) {
	size := int64(len(a.Result))
	if uncharged && !memory.Fit(size) {
		memory.Close()
		return nil, fault.RequestMemory()
	}
	memory.Resize(size)
	a.memory = memory
	runtime.AddCleanup(a, (*held.Share).Close, memory)
	return a, nil
}

// Release says that an answer was sent, or is not wanted any more.
func (a *Answer) Release() { a.memory.Close() }

// Work runs what brings an answer into another form, which takes several times its memory. It must not wait for a client.
func (a *Answer) Work(f func()) {
	if a.memory == nil {
		f()
		return
	}
	a.memory.Work(f)
}

// Encode makes the bytes of an answer that a client is sent; they count until sent is called.
func (a *Answer) Encode(as func(*Answer) ([]byte, error)) (text []byte, sent func(), err error) {
	a.Work(func() { text, err = as(a) })
	if a.memory == nil {
		return text, func() {}, err
	}
	beside := a.memory.Beside(int64(len(text)))
	return text, beside.Close, err
}
