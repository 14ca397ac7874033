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

// LoginOffer is the answer to GET /v1/login: how one may log in besides showing a token.
type LoginOffer struct {
	Provider *LoginProvider `json:"provider,omitempty"` // absent: nobody logs in at an identity provider
}

// LoginProvider is an identity provider at which people log in by OpenID Connect's code flow with PKCE, as a public client.
type LoginProvider struct {
	Issuer                string `json:"issuer"`
	AuthorizationEndpoint string `json:"authorization_endpoint"`
	ClientID              string `json:"client_id"`
	Scope                 string `json:"scope"`
	EndSessionEndpoint    string `json:"end_session_endpoint,omitempty"` // where one logs out there
}

// ProviderLogin is the body of POST /v1/login/provider: a code of the identity provider, with what only the client has that began the
// log-in.
type ProviderLogin struct {
	Code         string `json:"code"`
	CodeVerifier string `json:"code_verifier"`
	Nonce        string `json:"nonce"`        // that the ID token has to name
	RedirectURI  string `json:"redirect_uri"` // exactly as the log-in was begun with
}

// Login is the answer to POST /v1/login and to POST /v1/login/provider.
type Login struct {
	Token string `json:"token"`
}
