package mechanisms

import "sync"

// lazyLaw prepares a sampler at the first draw: mechanisms are also made to learn a price, and never drawn from.
type lazyLaw[T any] struct {
	once sync.Once
	law  *T
}

func (l *lazyLaw[T]) get(prepare func() *T) *T {
	l.once.Do(func() { l.law = prepare() })
	return l.law
}
