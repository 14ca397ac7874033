// What a steward sees of a dataset: what is promised, who spent what, what was asked and refused, and the policy in force. It changes nothing.

import { useEffect, useState } from 'preact/hooks'
import type { Account, Dataset, Gateway, Journal, JournalEntry, Problem, Refusals } from './api'
import type { PageProps } from './app'
import { Gauge, limitText } from './budget'
import { amount, isFree, price, time } from './format'
import { ProblemBox } from './problem'

export function Steward({ gateway, shown }: PageProps) {
  const [datasets, setDatasets] = useState<Dataset[] | null>(null)
  const [dataset, setDataset] = useState('')
  const [problem, setProblem] = useState<Problem | null>(null)
  const load = () => {
    setProblem(null)
    gateway.datasets().then(list => { setDatasets(list.datasets); setDataset(dataset || (list.datasets[0]?.name ?? '')) }, setProblem)
  }
  useEffect(() => { if (shown) load() }, [gateway, shown])
  return <>
    <div class="row">
      <h1>Steward</h1>
      <label>Dataset <select value={dataset} onChange={e => setDataset(e.currentTarget.value)}>
        {datasets?.map(d => <option key={d.name} value={d.name}>{d.name}</option>)}
      </select></label>
    </div>
    {problem && <ProblemBox problem={problem}><button onClick={load}>Try again</button></ProblemBox>}
    {datasets?.length === 0 && <p>No dataset has a policy yet: <code>noisegate policy init</code> drafts one.</p>}
    {dataset && shown && <OneDataset key={dataset} gateway={gateway} dataset={dataset} />}
  </>
}

// useLoaded asks once, and gives the answer or why there is none.
function useLoaded<T>(ask: () => Promise<T>): [T | null, Problem | null] {
  const [value, setValue] = useState<T | null>(null)
  const [problem, setProblem] = useState<Problem | null>(null)
  useEffect(() => { ask().then(setValue, setProblem) }, [])
  return [value, problem]
}

function OneDataset({ gateway, dataset }: { gateway: Gateway; dataset: string }) {
  const [accounts, noAccounts] = useLoaded(() => gateway.accounts(dataset).then(list => list.accounts))
  const [refusals, noRefusals] = useLoaded(() => gateway.refusals(dataset))
  const [policy, noPolicy] = useLoaded(() => gateway.policy(dataset))
  const problem = noAccounts ?? noRefusals ?? noPolicy
  return <div class="steward">
    {problem && <ProblemBox problem={problem} />}
    {accounts && <Promised account={accounts.find(a => a.account === 'dataset')} />}
    {accounts && <Accounts accounts={accounts} />}
    <Questions gateway={gateway} dataset={dataset} />
    {refusals && <Refused refusals={refusals} />}
    {policy !== null && <section class="card wide" aria-label="Policy">
      <h2>Policy in force</h2>
      <pre class="scroll" tabIndex={0} role="region" aria-label="Text of the policy"><bdi>{policy}</bdi></pre>
    </section>}
  </div>
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

function Accounts({ accounts }: { accounts: Account[] }) {
  return <section class="card wide" aria-label="Accounts">
    <h2>Who spent what</h2>
    <div class="scroll" tabIndex={0} role="region" aria-label="Table of accounts"><table>
      <thead><tr><th scope="col">account</th><th scope="col">used</th><th scope="col">spent</th><th scope="col">left</th><th scope="col">limit</th><th scope="col">state</th></tr></thead>
      <tbody>{accounts.map(a => <tr key={a.account}>
        <td><bdi>{a.account}</bdi></td><td><Gauge percent={Number(a.usage.percent)} rule={a.usage.rule} /></td>
        <td>{price(a.spent)}</td><td>{price(a.remaining)}</td><td>{limitText(a.limit)}</td>
        <td>{a.frozen ? 'frozen' : a.limit.replay_only ? 'replays only' : 'open'}{a.refills > 0 && `, refilled ${a.refills} times`}</td>
      </tr>)}</tbody>
    </table></div>
  </section>
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
  return <section class="card wide" aria-label="Refusals">
    <h2>Who was refused <span class="muted">since {time(since)}, by this gateway</span></h2>
    {refusals.length === 0 ? <p>Nobody.</p> : <div class="scroll" tabIndex={0} role="region" aria-label="Table of refusals"><table>
      <thead><tr><th scope="col">analyst</th><th scope="col">why</th><th scope="col" class="number">times</th></tr></thead>
      <tbody>{refusals.map(r => <tr key={r.analyst + ' ' + r.code}>
        <td><bdi>{r.analyst || '(others)'}</bdi></td><td><code>{r.code}</code></td><td class="number">{r.count.toLocaleString('en')}</td>
      </tr>)}</tbody>
    </table></div>}
  </section>
}
