// What a steward sees of a dataset, and changes in it: what is promised, who spent what, what was asked and refused, and the policy.

import { useEffect, useState } from 'preact/hooks'
import { type Account, type Dataset, type DatasetList, type Gateway, type Journal, type JournalEntry, Problem, type Refusals, type Verification } from './api'
import type { PageProps } from './app'
import { Accounts } from './accounts'
import { Bounds } from './bounds'
import { BurnDown } from './burndown'
import { FirstPolicy, FirstQuestion } from './first'
import { amount, isFree, price, time } from './format'
import { Policy } from './policy'
import { Prepared } from './prepared'
import { ProblemBox } from './problem'

export function Steward({ gateway, who, roles, shown }: PageProps) {
  const [list, setList] = useState<DatasetList | null>(null)
  const [dataset, setDataset] = useState('')
  const [applied, setApplied] = useState('') // the dataset whose first policy was applied here
  const [version, setVersion] = useState(0) // of what is shown: another one is asked anew
  const [problem, setProblem] = useState<Problem | null>(null)
  const load = () => {
    setProblem(null)
    gateway.datasets().then(list => {
      setList(list)
      setDataset(dataset || (list.datasets[0]?.name ?? list.without_policy?.[0] ?? ''))
    }, setProblem)
  }
  useEffect(() => { if (shown) load() }, [gateway, shown])
  const changed = () => { setVersion(version + 1); load() }
  const described = list?.datasets.find(d => d.name === dataset)
  const names = [...list?.datasets.map(d => d.name) ?? [], ...list?.without_policy ?? []]
  return <>
    <div class="row">
      <h1>Steward</h1>
      <label class="unprinted">Dataset <select value={dataset} onChange={e => setDataset(e.currentTarget.value)}>
        {names.map(name => <option key={name} value={name}>{name}</option>)}
        {dataset && !names.includes(dataset) && <option value={dataset}>{dataset}</option>}
      </select></label>
      {described && <button class="unprinted" onClick={() => print()}>Print for the privacy officer</button>}
    </div>
    {problem && <ProblemBox problem={problem}><button onClick={load}>Try again</button></ProblemBox>}
    {list && names.length === 0 && <p>No dataset answers now. What is wrong stands in the gateway's log: <code>noisegate doctor</code> looks as well.</p>}
    {list?.without_policy?.includes(dataset) && <FirstPolicy key={dataset} gateway={gateway} who={who} dataset={dataset}
      onApplied={() => { setApplied(dataset); changed() }} />}
    {described && shown && applied === dataset && <FirstQuestion dataset={described} mayAsk={roles.includes('analyst')} />}
    {described && shown && <OneDataset key={`${dataset} ${version}`} gateway={gateway} who={who} dataset={described} onChange={changed} />}
  </>
}

// useLoaded asks once, and gives the answer or why there is none.
function useLoaded<T>(ask: () => Promise<T>): [T | null, Problem | null] {
  const [value, setValue] = useState<T | null>(null)
  const [problem, setProblem] = useState<Problem | null>(null)
  useEffect(() => { ask().then(setValue, setProblem) }, [])
  return [value, problem]
}

function OneDataset({ gateway, who, dataset: { name: dataset, ...described }, onChange }: {
  gateway: Gateway; who: string; dataset: Dataset; onChange: () => void
}) {
  const [accounts, noAccounts] = useLoaded(() => gateway.accounts(dataset).then(list => list.accounts))
  const [refusals, noRefusals] = useLoaded(() => gateway.refusals(dataset))
  const [policy, noPolicy] = useLoaded(() => gateway.policy(dataset))
  const problem = noAccounts ?? noRefusals ?? noPolicy
  return <div class="steward">
    {problem && <ProblemBox problem={problem} />}
    {accounts && <Promised account={accounts.find(a => a.account === 'dataset')} />}
    {accounts && <Accounts gateway={gateway} dataset={dataset} who={who} accounts={accounts} onChange={onChange} />}
    {accounts && <BurnDown gateway={gateway} dataset={dataset} accounts={accounts} />}
    <Bounds dataset={{ name: dataset, ...described }} />
    <Prepared gateway={gateway} dataset={dataset} />
    <Ledger gateway={gateway} dataset={dataset} />
    <Questions gateway={gateway} dataset={dataset} />
    {refusals && <Refused refusals={refusals} />}
    {policy !== null && <Policy gateway={gateway} who={who} dataset={dataset} described={{ name: dataset, ...described }} inForce={policy} onApplied={onChange} />}
  </div>
}

// Ledger has the gateway read its own ledger again: each entry's hash, and each account's sums.
function Ledger({ gateway, dataset }: { gateway: Gateway; dataset: string }) {
  const [said, setSaid] = useState<Verification | null>(null)
  const [problem, setProblem] = useState<Problem | null>(null)
  const [running, setRunning] = useState(false)
  const verify = () => {
    setRunning(true)
    setProblem(null)
    gateway.verify(dataset).then(setSaid, setProblem).finally(() => setRunning(false))
  }
  return <section class="card wide" aria-label="Ledger">
    <h2>Is the ledger whole?</h2>
    {problem && <ProblemBox problem={problem} />}
    {said?.broken && <div class="problem" role="alert"><p><strong><bdi>{said.broken}</bdi></strong></p>
      <p>The dataset takes no question until an operator has looked: <a href="/docs/runbooks#a-ledger-is-broken" target="_blank" rel="noopener">what to do</a>.</p></div>}
    {said && !said.broken && <p role="status">{said.entries.toLocaleString('en')} entries and all accounts agree, up to entry {said.seq.toLocaleString('en')}
      {said.unchained > 0 && `; ${said.unchained} are older than the chain`}. Its hash: <code class="hash">{said.hash}</code></p>}
    <p class="row unprinted"><button disabled={running} onClick={verify}>{running ? 'Verifying …' : 'Verify'}</button>
      <span class="muted">Somebody who does not trust this gateway compares the hash with an anchor: <code>noisegate audit verify</code>.</span></p>
  </section>
}

// Promised says what the account of the dataset means for one person: with ε, whoever wavered between two worlds that differ in that person
// is right about them with a chance of at most e^ε/(1+e^ε), but for δ.
function Promised({ account }: { account: Account | undefined }) {
  if (!account) return null
  const { epsilon, delta } = account.lifetime
  return <section class="card wide" aria-label="Promise">
    <h2>What is promised</h2>
    {epsilon === null ? <p>No finite ε is known for this dataset's limit.</p> : <>
      <p class="price">ε {amount(epsilon)}{delta !== null && Number(delta) > 0 && `, δ ${amount(delta)}`}</p>
      <p>Whatever is asked, as long as nobody raises the limit: somebody who has no idea whether one person is in the data guesses right with a chance of at
        most {chance(Number(epsilon))} %{delta !== null && Number(delta) > 0 && ', but for δ'}. A coin has 50 %.</p>
    </>}
  </section>
}

// chance is e^ε/(1+e^ε) in percent, rounded up at a digit that tells it from 100.
function chance(epsilon: number): string {
  const digits = Math.min(Math.max(1, Math.ceil(epsilon / Math.LN10) - 1), 12)
  return (Math.ceil(100 / (1 + Math.exp(-epsilon)) * 10 ** digits) / 10 ** digits).toFixed(digits)
}

// Questions are the charges of the journal, newest first, with what was asked.
function Questions({ gateway, dataset }: { gateway: Gateway; dataset: string }) {
  const [entries, setEntries] = useState<JournalEntry[]>([])
  const [next, setNext] = useState<string | undefined>('')
  const [problem, setProblem] = useState<Problem | null>(null)
  const add = (page: Journal) => { setEntries([...entries, ...page.entries]); setNext(page.next_cursor) }
  const more = () => { gateway.journal(dataset, next).then(add, setProblem) }
  useEffect(more, [])
  return <section class="card wide" aria-label="Journal">
    <h2>What was asked and changed</h2>
    {problem && <ProblemBox problem={problem} />}
    <div class="scroll" tabIndex={0} role="region" aria-label="Entries of the journal"><table>
      <thead><tr><th scope="col">when</th><th scope="col">who</th><th scope="col">what</th><th scope="col">counts as</th><th scope="col">question or account</th></tr></thead>
      <tbody>{entries.map(e => <tr key={e.seq}>
        <td class="nowrap">{time(e.at)}</td><td><bdi>{e.subject}</bdi></td><td>{e.kind}</td>
        <td class="nowrap">{isFree(e.amounts) ? '' : price(e.amounts)}</td>
        <td><code><bdi>{e.request?.sql ?? e.account_name ?? ''}</bdi></code></td>
      </tr>)}</tbody>
    </table></div>
    {next && <p class="more"><button onClick={more}>Show older</button></p>}
  </section>
}

function Refused({ refusals: { since, refusals } }: { refusals: Refusals }) {
  const asked = refusals.filter(r => r.count > 0)
  const typed = refusals.reduce((sum, r) => sum + r.estimates, 0)
  return <section class="card wide" aria-label="Refusals">
    <h2>Who was refused <span class="muted">since {time(since)}, by this gateway</span></h2>
    {asked.length === 0 ? <p>Nobody.</p> : <div class="scroll" tabIndex={0} role="region" aria-label="Table of refusals"><table>
      <thead><tr><th scope="col">analyst</th><th scope="col">why</th><th scope="col" class="number">times</th></tr></thead>
      <tbody>{asked.map(r => <tr key={r.analyst + ' ' + r.code}>
        <td><bdi>{r.analyst || '(others)'}</bdi></td><td><code>{r.code}</code></td><td class="number">{r.count.toLocaleString('en')}</td>
      </tr>)}</tbody>
    </table></div>}
    {typed > 0 && <p class="muted">{typed === 1 ? 'One estimate was' : `${typed.toLocaleString('en')} estimates were`} refused besides: pages ask for them while somebody types.</p>}
  </section>
}
