package archtest

import (
	"go/ast"
	"maps"
	"slices"
	"strings"
)

// The reasons for which the time of a look into the gateway's memory does not reveal what others asked.
const (
	byAnalyst      = "by analyst"          // others neither fill nor empty what an analyst finds; also of one request, session or client
	ofThePolicy    = "of the policy"       // no question fills it: policies, keys, settings, servers, and what stewards and operators do
	behindBoundary = "behind the boundary" // it is touched only after a charge, whose work ends at a boundary, or told to stewards alone
)

// memory is why something may be remembered longer than a request.
type memory struct{ reason, because string }

// memories are the types of the gateway's process that remember something for longer than a request: those with a lock, or what locks
// itself, and a map or a list, by package and name; and pools, whose connections remember statements.
func memories() map[string]memory {
	return map[string]memory{
		"budget/pgledger.Ledger":                  {behindBoundary, "open charges, by reservation; accounts, where charges are admitted"},
		"budget/pgledger.groupCommit":             {behindBoundary, "operations that wait for a dataset's writer: charges and their ends"},
		"budget/pgledger.heads":                   {ofThePolicy, "what was verified of each dataset's chain, by itself"},
		"budget/pgledger.known":                   {ofThePolicy, "what is known of each dataset's accounts by its entries"},
		"budget/pgledger.openCharge":              {behindBoundary, "what one charge released, until it ends"},
		"budget/pgledger.pgxpool":                 {ofThePolicy, "its texts are the ledger's own: which they are depends on no question"},
		"budget/pgledger.joined":                  {byAnalyst, "look-ups that wait, and are sent together"},
		"budget/pgledger.settlements":             {byAnalyst, "the newest settlements of each analyst"},
		"catalog.Cache":                           {ofThePolicy, "the policies in force"},
		"cmd/noisegate.pgxpool":                   {ofThePolicy, "of one command"},
		"cmd/noisegate/internal/server.Server":    {ofThePolicy, "datasets by name, and what loads them"},
		"cmd/noisegate/internal/server.pgxpool":   {ofThePolicy, "its texts are those of policies and collections"},
		"cmd/noisegate/internal/server.secured":   {ofThePolicy, "what the server is reached by"},
		"cmd/noisegate/internal/server.unentered": {ofThePolicy, "keys and policies that the chain is to have"},
		"gateway.Service":                         {byAnalyst, "answered, last, proofs, noises: of one analyst; datasets: of the configuration"},
		"gateway.Stewards":                        {ofThePolicy, "keys of stewards"},
		"gateway.Schedule":                        {byAnalyst, "of one request"},
		"gateway.answered":                        {byAnalyst, "what one analyst was answered"},
		"gateway.flights":                         {byAnalyst, "the analyst is in its key"},
		"gateway.freeReads":                       {byAnalyst, "the reader is in its key"},
		"gateway.gate":                            {byAnalyst, "who runs and waits, by subject; that all places are taken is the machine's load"},
		"gateway.keyLists":                        {byAnalyst, "lists of keys that one analyst's questions asked for"},
		"gateway.jobs":                            {byAnalyst, "questions that are not waited for, by subject"},
		"gateway.lastAccounts":                    {byAnalyst, "the accounts of one analyst, once the ledger has all of them"},
		"gateway.limits":                          {ofThePolicy, "limits of lines of policies"},
		"gateway.preparing":                       {ofThePolicy, "runs that stewards ask for"},
		"gateway.readiness":                       {ofThePolicy, "what the gateway's own looks found"},
		"gateway.refusals":                        {behindBoundary, "counted for stewards"},
		"gateway.running":                         {byAnalyst, "questions that may be cancelled, by subject"},
		"gateway.serving":                         {ofThePolicy, "which copies there are, by snapshot"},
		"gateway/auth.Codes":                      {byAnalyst, "log-ins under way, each of one client"},
		"gateway/auth.Provider":                   {ofThePolicy, "what the identity provider says of itself"},
		"gateway/auth.Verifier":                   {ofThePolicy, "keys, and revoked tokens"},
		"gateway/auth.remoteKeys":                 {ofThePolicy, "keys of the issuer"},
		"gateway/httpapi.attempts":                {byAnalyst, "log-ins by address"},
		"gateway/httpapi.bodyBudget":              {byAnalyst, "bytes of bodies that are being read, by caller"},
		"gateway/httpapi.openRequests":            {byAnalyst, "open requests by caller"},
		"gateway/internal/connlimit.Limit":        {byAnalyst, "open connections by address"},
		"gateway/internal/each.Analyst":           {byAnalyst, "it is what makes them so"},
		"gateway/internal/held.Budget":            {byAnalyst, "what each analyst's answers hold; that none is left is the machine's load"},
		"gateway/pgexec.Database":                 {byAnalyst, "trials are each of one analyst; copies are what there are"},
		"gateway/pgexec.counts":                   {behindBoundary, "counts of public tables, by which a charged statement may run"},
		"gateway/pgexec.pgxpool":                  {behindBoundary, "statements of a question have names only once it is charged"},
		"gateway/pgexec.shards":                   {behindBoundary, "pins that held on shards, looked at when a charged statement begins"},
		"gateway/pgexec.trials":                   {byAnalyst, "what one analyst asked of the server"},
		"gateway/pgwire.Server":                   {byAnalyst, "sessions, by who has them"},
		"gateway/pgwire.session":                  {byAnalyst, "of one session"},
		"gateway/twin.pgxpool":                    {ofThePolicy, "a twin has names and types of a policy, and no rows"},
		"gateway/twin.twin":                       {ofThePolicy, "what a twin's server says of itself"},
		"mechanisms.Noises":                       {byAnalyst, "one for each analyst"},
		"pate.pgxpool":                            {ofThePolicy, "its texts are the store's own"},
		"sqlrewrite/verify/memo.Memo":             {byAnalyst, "one for each analyst"},
	}
}

// checkCaches wants each memory that outlives a request to be listed, with why it does not reveal what others asked.
func checkCaches(t *Tree) []Finding {
	listed := memories()
	var found []Finding
	remembered := rememberedIn(t)
	for _, name := range slices.Sorted(maps.Keys(remembered)) {
		if m := listed[name]; m.because == "" || !slices.Contains([]string{byAnalyst, ofThePolicy, behindBoundary}, m.reason) {
			found = append(found, Finding{t.at(remembered[name]), name + " outlives a request, and internal/archtest/caches.go does not say " +
				"why it tells nobody what others asked"})
		}
	}
	return found
}

// rememberedIn finds the memories of a gateway's process.
func rememberedIn(t *Tree) map[string]ast.Node {
	notServing := []string{"budget/budgettest/", "gateway/gatewaytest/", "integration/", "internal/"}
	all := map[string]ast.Node{}
	inspect(t.source(), func(f *File, n ast.Node) {
		if slices.ContainsFunc(notServing, func(dir string) bool { return strings.HasPrefix(f.Dir+"/", dir) }) {
			return
		}
		switch n := n.(type) {
		case *ast.TypeSpec:
			if s, ok := n.Type.(*ast.StructType); ok && isMemory(s) {
				all[f.Dir+"."+n.Name.Name] = n
			}
		case *ast.SelectorExpr:
			if isIdent(n.X, "pgxpool") && strings.HasPrefix(n.Sel.Name, "New") {
				all[f.Dir+".pgxpool"] = n
			}
		}
	})
	return all
}

// isMemory reports whether several requests may find in a struct what one of them left: it has a lock and a map or a list, or a field that
// locks itself.
func isMemory(s *ast.StructType) bool {
	locks, holds := false, false
	for _, field := range s.Fields.List {
		ast.Inspect(field.Type, func(n ast.Node) bool {
			switch n := n.(type) {
			case *ast.FuncType:
				return false
			case *ast.MapType, *ast.ArrayType:
				holds = true
			case *ast.SelectorExpr:
				switch of, ok := n.X.(*ast.Ident); {
				case !ok:
				case of.Name == "sync" && (n.Sel.Name == "Mutex" || n.Sel.Name == "RWMutex"):
					locks = true
				case of.Name == "sync" && n.Sel.Name == "Map", of.Name == "atomic" && (n.Sel.Name == "Pointer" || n.Sel.Name == "Value"),
					of.Name == "singleflight", of.Name == "each", of.Name == "list", strings.Contains(strings.ToLower(of.Name), "lru"):
					locks, holds = true, true
				}
			}
			return true
		})
	}
	return locks && holds
}
