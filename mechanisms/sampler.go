package mechanisms

// Sampler draws exact samples from crypto/rand. It is not safe for concurrent use: each request has its own.
type Sampler struct{}

// NewSampler returns a sampler over crypto/rand.
func NewSampler() *Sampler { return &Sampler{} }
