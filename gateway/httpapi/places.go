package httpapi

import "sync"

// places bounds how many queries of one caller run at a time. It is safe for concurrent use.
type places struct {
	each int
	mu   sync.Mutex
	used map[string]int // no entry: 0
}

func newPlaces(each int) *places { return &places{each: each, used: map[string]int{}} }

// take occupies a place; ok is false when the caller has none left. The caller of take calls leave when done.
func (p *places) take(caller string) (leave func(), ok bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.used[caller] >= p.each {
		return nil, false
	}
	p.used[caller]++
	return func() {
		p.mu.Lock()
		defer p.mu.Unlock()
		if p.used[caller]--; p.used[caller] == 0 {
			delete(p.used, caller)
		}
	}, true
}
