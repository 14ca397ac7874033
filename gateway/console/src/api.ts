// What the gateway says over HTTP, as far as the console asks for it (docs/http-api.md), and the one place that sends requests.

export interface Amounts { epsilon: string | null; rho: string | null; delta: string | null }
// Price is the most that a request may be charged; a δ that it does not name is 0.
export interface Price { epsilon?: string; rho?: string; delta?: string }
export interface Note { code: string; text: string }
export type Value = string | number | boolean | null
export type Bounds = [Value, Value] | null

export interface QueryRequest {
  dataset: string; sql: string; epsilon?: string; delta?: string; mechanism?: string; confidence?: number
}
export interface OutputEstimate {
  name: string; columns?: string[]; mechanism: string; selection?: string; bound?: string; half_width: Value; rank_error?: string
  price: Amounts; shown_at?: { probability: number; units: number }[]
}
export interface Estimate {
  price: Amounts; remaining: Amounts; affordable: boolean; replayed?: boolean; confidence: number
  outputs: OutputEstimate[]; notes: Note[]; as_of?: string; useful?: { output: string; needs: string; counts?: string; of?: number; possible?: number }
}
export interface Column {
  name: string; type: string; kind: 'key' | 'aggregate' | 'derived' | 'public'
  mechanism?: string; half_width: Value; digits?: number; rank_error?: string; bias?: string
}
export interface Result { columns: Column[]; rows: Value[][]; intervals: Bounds[][]; notes: Note[]; useful?: { rows: number; of: number } }
export interface Answer extends Result {
  release_id: string; dataset: string; replayed: boolean; spent: Amounts; remaining: Amounts; released_at?: string; as_of?: string
}
export interface ReleaseSummary { release_id: string; dataset: string; request: QueryRequest; cost: Amounts; at: string }
export interface Release extends ReleaseSummary, Result {}
export interface TableColumn { name: string; type: string; bounds?: { lo: string; hi: string }; keys?: string }
export interface Table {
  schema: string; name: string; public: boolean; unit?: { kind: string; column: string }
  max_rows?: number; max_groups?: number; max_rows_total?: number; columns: TableColumn[]
}
export interface DatasetList { datasets: Dataset[]; without_policy?: string[] }
export interface PolicyDraft { dataset: string; unit?: string; candidates: string[]; text?: string; blanks: number }
export interface Dataset { name: string; version: number; tables: Table[] }
export interface Limit {
  form?: string; epsilon?: string | null; rho?: string | null; delta?: string | null; max_epsilon_per_query?: string | null
  replay_only?: boolean; tranche?: { every: string; epsilon?: string | null; rho?: string | null }
  rate?: { epsilon: string; per: string }
}
export interface Budget {
  dataset: string; account: string; limit: Limit; spent: Amounts; reserved: Amounts; remaining: Amounts
  usage: { rule: string; percent: string }; frozen: boolean; next_tranche?: string; advice: string
  shared: { account: string; form: string; max_epsilon_per_query?: string | null; replay_only?: boolean }[]
}
export interface Account {
  dataset: string; account: string; limit: Limit; spent: Amounts; reserved: Amounts; remaining: Amounts
  lifetime: { epsilon: string | null; delta: string | null }; usage: { rule: string; percent: string }
  frozen: boolean; refills: number; next_tranche?: string; advice: string; due?: boolean
}
export interface PreparedTable {
  table: string; max_rows?: number; ranks?: string[][]; append?: string; required?: boolean
  versions: { version: number; as_of: string; fits: boolean; serves: boolean }[]
}
export interface PrepareJob {
  job_id: string; by: string; state: string; begun: string
  tables: { table: string; state: string; step?: string; version?: number; problem?: string }[]
}
export interface PreparedList { can_prepare: boolean; tables: PreparedTable[]; jobs: PrepareJob[] }
export interface Refusals { since: string; refusals: { analyst: string; code: string; count: number; estimates: number }[] }
export interface JournalEntry {
  seq: number; at: string; kind: string; subject: string; amounts: Amounts; shared?: Amounts; account_ids: number[]; release_id?: string
  account_name?: string; request?: { sql?: string }
}
export interface Journal { entries: JournalEntry[]; next_cursor?: string }
export interface Refill { epsilon?: string; rho?: string; delta?: string; reason?: string }
// Signature is what a command of noisegate signed: the page hands it on as it is.
export interface Signature { key: string; signature: string; [member: string]: unknown }
export interface PolicyDocument { text: string; tag: string | null }
export interface Finding { line: number; column: number; text: string; hint?: string }
export interface PolicyReview {
  version: number; in_force: boolean; changes: { effect: string; text: string }[]; renews: string
  warnings: Finding[]; noise: { table: string; text: string }[]; problems: Finding[]; two_for?: string[]; ledger?: string
}
export interface Verification { dataset: string; seq: number; hash: string; entries: number; unchained: number; broken?: string }
export interface Ensemble {
  ensemble: string; state: string; teachers: number; classes: string[]; queries: number; answered: number
  usage?: { rule: string; percent: string }; sealed_at?: string; dataset: string; rejected: number
}
// EpsilonCurve is ε after numbers of labels, by each accountant that looks at no vote.
export interface EpsilonCurve { points: number[]; lines: { method: string; epsilon: Value[] }[] }
export interface LabelRequest { queries: string[]; mechanism: string; [parameter: string]: string | string[] }
export interface LabelEstimate {
  queries: number; replayed: number; worst_case: Amounts; epsilon: string | null; delta: string; affordable: boolean; still_buys: number
  terms: { meaning: string }; notes: Note[]; curve?: EpsilonCurve
}
export interface Label { query: string; status: string; label: number | null; class?: string }
export interface LabelResponse { labels: Label[]; spent: Amounts; remaining: Amounts }
// LoginProvider is an identity provider, where the console's people log in.
export interface LoginProvider { issuer: string; authorization_endpoint: string; client_id: string; scope: string; end_session_endpoint?: string }
export interface LoginOffer { provider?: LoginProvider }
export interface Principal { subject: string; roles: string[]; groups: string[] }

// Problem is a refusal or a failure (RFC 9457). Its code is empty where no gateway answered.
export class Problem extends Error {
  constructor(
    readonly code: string, readonly detail: string, readonly hint = '', readonly position?: { line: number; column: number },
    readonly extra: Record<string, string> = {},
  ) { super(detail) }

  static unreachable(): Problem {
    return new Problem('', 'The gateway cannot be reached.', 'What you typed is still here; try again when it is back.')
  }
}

// Gateway asks with one token. A request that is no longer wanted is stopped by its signal, and throws an AbortError.
export class Gateway {
  constructor(readonly token: string, private readonly loggedOut: (why: Problem) => void) {}

  principal() { return this.send<Principal>('GET', '/v1/principal') }
  datasets() { return this.send<DatasetList>('GET', '/v1/datasets') }
  budget() { return this.send<{ budgets: Budget[] }>('GET', '/v1/budget') }
  releases(cursor = '') {
    return this.send<{ releases: ReleaseSummary[]; next_cursor?: string }>('GET', '/v1/releases' + (cursor && `?cursor=${encodeURIComponent(cursor)}`))
  }
  release(id: string) { return this.send<Release>('GET', `/v1/releases/${encodeURIComponent(id)}`) }
  accounts(dataset: string) { return this.send<{ accounts: Account[] }>('GET', `${at(dataset)}/budgets`) }
  refusals(dataset: string) { return this.send<Refusals>('GET', `${at(dataset)}/refusals`) }
  policy(dataset: string) { return this.send<PolicyDocument>('GET', `${at(dataset)}/policy`) }
  // draftPolicy gives the columns that could tell a person, and a draft where one is named, or is the only one.
  draftPolicy(dataset: string, unit = '') {
    return this.send<PolicyDraft>('GET', `${at(dataset)}/policy/draft` + (unit && `?unit=${encodeURIComponent(unit)}`))
  }
  checkPolicy(dataset: string, text: string, signal: AbortSignal) {
    return this.send<PolicyReview>('POST', `${at(dataset)}/policy/check`, text, { headers: asYAML, signal })
  }
  // applyPolicy replaces the version that tag names; none where there is no policy yet.
  applyPolicy(dataset: string, text: string, tag: string | null, approval: Signature | null) {
    const replaces: Record<string, string> = tag === null ? { 'If-None-Match': '*' } : { 'If-Match': tag }
    const approved: Record<string, string> = approval ? { 'Noisegate-Approval': inASCII(approval) } : {}
    return this.send<{ version: number }>('PUT', `${at(dataset)}/policy`, text, { headers: { ...asYAML, ...replaces, ...approved } })
  }
  setLimit(dataset: string, account: string, limit: Limit, signature: Signature | null) {
    return this.send<Account>('PUT', budgetAt(dataset, account), signature ? { ...limit, signature } : limit)
  }
  refill(dataset: string, account: string, added: Refill, signature: Signature | null) {
    return this.send<Account>('POST', `${budgetAt(dataset, account)}/refill`, signature ? { ...added, signature } : added)
  }
  freeze(dataset: string, account: string, frozen: boolean) {
    return this.send<Account>('POST', `${budgetAt(dataset, account)}/${frozen ? 'freeze' : 'thaw'}`)
  }
  prepared(dataset: string) { return this.send<PreparedList>('GET', `${at(dataset)}/prepare`) }
  prepare(dataset: string, table: string, full: boolean) { return this.send<PrepareJob>('POST', `${at(dataset)}/prepare`, { table, full }) }
  cancelPrepare(dataset: string, job: string) { return this.send<PrepareJob>('DELETE', `${at(dataset)}/prepare/${encodeURIComponent(job)}`) }
  verify(dataset: string) { return this.send<Verification>('POST', `${at(dataset)}/verify`) }
  journal(dataset: string, cursor = '', requests = true) {
    return this.send<Journal>('GET', `/v1/audit?requests=${requests}&dataset=${encodeURIComponent(dataset)}` +
      (cursor && `&cursor=${encodeURIComponent(cursor)}`))
  }
  ensembles() { return this.send<{ ensembles: Ensemble[] }>('GET', '/v1/pate') }
  ensemble(name: string) { return this.send<Ensemble>('GET', `/v1/pate/${encodeURIComponent(name)}`) }
  // estimateLabels also gives the curve of ε up to so many labels.
  estimateLabels(ensemble: string, q: LabelRequest, upTo: number, signal: AbortSignal) {
    return this.send<LabelEstimate>('POST', `/v1/pate/${encodeURIComponent(ensemble)}/labels/estimate`, { ...q, up_to: upTo }, { signal })
  }
  labels(ensemble: string, q: LabelRequest, p: Payment) {
    return this.send<LabelResponse>('POST', `/v1/pate/${encodeURIComponent(ensemble)}/labels`, { ...q, at_most: p.atMost }, keyed(p))
  }
  estimate(q: QueryRequest, signal: AbortSignal) { return this.send<Estimate>('POST', '/v1/query/estimate', q, { signal }) }

  // query pays, at most so much. Under one key it pays once, however often it is sent.
  query(q: QueryRequest, p: Payment) { return this.send<Answer>('POST', '/v1/query', { ...q, at_most: p.atMost }, keyed(p)) }

  private async send<T>(method: string, path: string, body?: unknown, more: RequestInit = {}): Promise<T> {
    try {
      return await request<T>(method, path, body, { ...more, headers: { ...more.headers, Authorization: `Bearer ${this.token}` } })
    } catch (e) {
      if (e instanceof Problem && ['auth/missing', 'auth/invalid', 'auth/expired'].includes(e.code)) this.loggedOut(e)
      throw e
    }
  }
}

// Payment is what a request that may be charged has besides its question.
export interface Payment { key: string; atMost: Price }

const keyed = (p: Payment) => ({ headers: { 'Idempotency-Key': p.key } })

// inASCII is JSON as a header takes it.
const inASCII = (value: unknown) => JSON.stringify(value).replace(/[\u0080-\uffff]/g, c => '\\u' + c.charCodeAt(0).toString(16).padStart(4, '0'))

const asYAML = { 'Content-Type': 'application/yaml' }
const budgetAt = (dataset: string, account: string) => `${at(dataset)}/budgets/${encodeURIComponent(account)}`
const at = (dataset: string) => `/v1/datasets/${encodeURIComponent(dataset)}`

// login exchanges a one-time code for a token. The code travels in the body, never in an address.
export async function login(code: string): Promise<string> {
  return (await request<{ token: string }>('POST', '/v1/login', { code }, {})).token
}

export const loginOffer = () => request<LoginOffer>('GET', '/v1/login', undefined, {})

// logInAtProvider exchanges a code of the identity provider, with what only the tab has that began the log-in.
export async function logInAtProvider(begun: { code: string; code_verifier: string; nonce: string; redirect_uri: string }): Promise<string> {
  return (await request<{ token: string }>('POST', '/v1/login/provider', begun, {})).token
}

async function request<T>(method: string, path: string, body: unknown, more: RequestInit): Promise<T> {
  const headers: Record<string, string> = { ...more.headers as Record<string, string> }
  if (typeof body === 'object') headers['Content-Type'] = 'application/json'
  let response: Response
  let text: string
  try {
    response = await fetch(path, {
      ...more, method, headers, body: typeof body === 'object' ? JSON.stringify(body) : body as string | undefined,
      cache: 'no-store', credentials: 'omit', referrerPolicy: 'no-referrer', redirect: 'error',
    })
    text = await response.text()
  } catch (e) {
    if (e instanceof DOMException && e.name === 'AbortError') throw e
    throw Problem.unreachable()
  }
  if (response.ok && response.headers.get('Content-Type') === 'application/yaml') return { text, tag: response.headers.get('ETag') } as T
  let value: any
  try {
    value = JSON.parse(text)
  } catch {
    throw new Problem('', `What answered is no gateway (status ${response.status}).`)
  }
  if (!response.ok) throw problemOf(value, response.status)
  return value as T
}

function problemOf(value: any, status: number): Problem {
  const { code, detail, hint, position } = value
  const extra: Record<string, string> = {}
  for (const [name, member] of Object.entries(value)) if (typeof member === 'string') extra[name] = member
  return new Problem(String(code ?? ''), String(detail ?? `status ${status}`), String(hint ?? ''), position, extra)
}

// isAborted tells a request that was stopped from one that failed.
export const isAborted = (e: unknown) => e instanceof DOMException && e.name === 'AbortError'
