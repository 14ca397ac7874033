package api

// Principal is the answer to GET /v1/principal: who the caller is, as the token says.
type Principal struct {
	Subject string   `json:"subject"` // budgets and answers belong to it
	Roles   []string `json:"roles"`   // analyst, steward, ml, collector
	Groups  []string `json:"groups"`
}

// LoginRequest is the body of POST /v1/login: a one-time code, as noisegate demo prints one.
type LoginRequest struct {
	Code string `json:"code"`
}

// Login is the answer to POST /v1/login.
type Login struct {
	Token string `json:"token"`
}
