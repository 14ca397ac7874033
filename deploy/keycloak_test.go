package deploy_test

import (
	"encoding/json"
	"os"
	"slices"
	"testing"
)

// TestKeycloakRealm: the realm has what docs/operations.md wants of the console's client.
func TestKeycloakRealm(t *testing.T) {
	text, err := os.ReadFile("keycloak.json")
	if err != nil {
		t.Fatal(err)
	}
	var realm struct {
		Roles   struct{ Realm []struct{ Name string } }
		Clients []struct {
			ClientID                                                                                                  string
			PublicClient, StandardFlowEnabled, ImplicitFlowEnabled, DirectAccessGrantsEnabled, ServiceAccountsEnabled bool
			RedirectURIs, WebOrigins                                                                                  []string
			Attributes                                                                                                map[string]string
			ProtocolMappers                                                                                           []struct {
				ProtocolMapper string
				Config         map[string]string
			}
		}
	}
	if err := json.Unmarshal(text, &realm); err != nil || len(realm.Clients) != 1 {
		t.Fatalf("%v, %d clients", err, len(realm.Clients))
	}
	c := realm.Clients[0]
	if c.ClientID != "noisegate-console" || !c.PublicClient || !c.StandardFlowEnabled || c.ImplicitFlowEnabled ||
		c.DirectAccessGrantsEnabled || c.ServiceAccountsEnabled ||
		c.Attributes["pkce.code.challenge.method"] != "S256" || len(c.WebOrigins) != 0 ||
		!slices.Equal(c.RedirectURIs, []string{"https://noisegate.example.org/"}) {
		t.Errorf("the client is %+v", c)
	}
	if len(c.ProtocolMappers) != 1 || c.ProtocolMappers[0].Config["included.custom.audience"] != "noisegate" ||
		c.ProtocolMappers[0].Config["id.token.claim"] != "false" { // an ID token is no token for the gateway
		t.Errorf("mappers %+v", c.ProtocolMappers)
	}
	for _, role := range []string{"analyst", "steward", "ml"} {
		if !slices.ContainsFunc(realm.Roles.Realm, func(r struct{ Name string }) bool { return r.Name == role }) {
			t.Errorf("there is no role %s", role)
		}
	}
}
