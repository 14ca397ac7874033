// The page on which ML engineers buy private labels: an ensemble, the names of queries, what their labels would cost, and the labels.

import { useEffect, useState } from 'preact/hooks'
import type { Ensemble, Label, LabelEstimate, LabelRequest, LabelResponse, Problem } from './api'
import type { PageProps } from './app'
import { Gauge } from './budget'
import { cells, lines, download } from './csv'
import { Curve } from './curve'
import { amount, isFree, price, time } from './format'
import { dearer, isDearer, useEstimate, usePayment } from './paying'
import { ProblemBox } from './problem'

// The mechanisms with their parameters: docs/pate.md says what they are.
const mechanisms: { name: string; title: string; parameters: [name: string, title: string][] }[] = [
  { name: 'gnmax', title: 'GNMax', parameters: [['sigma', 'σ']] },
  { name: 'confident', title: 'Confident GNMax', parameters: [['sigma1', 'σ of the check'], ['sigma2', 'σ of the answer'], ['threshold', 'votes wanted']] },
  { name: 'lnmax', title: 'LNMax', parameters: [['noise_scale', 'scale']] },
]

// Order is what is priced and paid together: the same names in another ensemble are another order.
interface Order { from: string; request: LabelRequest }

// Table is a file with several columns, one of which has the names of queries.
interface Table { rows: string[][]; column: number; headed: boolean }

const namesOf = (rows: string[][], column: number, headed: boolean) =>
  rows.slice(headed ? 1 : 0).map(r => r[column]?.trim()).filter(Boolean).join('\n')

const linesOf = (text: string) => [...new Set(text.split('\n').map(line => line.trim()).filter(Boolean))]

export function Labels({ gateway, shown }: PageProps) {
  const [ensembles, setEnsembles] = useState<Ensemble[] | null>(null)
  const [ensemble, setEnsemble] = useState<Ensemble | null>(null)
  const [mechanism, setMechanism] = useState(mechanisms[0])
  const [values, setValues] = useState<Record<string, string>>({})
  const [text, setText] = useState('')
  const [table, setTable] = useState<Table | null>(null) // the file, where it has several columns
  const choose = (t: Table) => { setTable(t); setText(namesOf(t.rows, t.column, t.headed)) }
  const [problem, setProblem] = useState<Problem | null>(null)
  const [bought, setBought] = useState<LabelResponse | null>(null)
  const [running, setRunning] = useState(false)
  const [changed, setChanged] = useState(false) // the price, since it was shown

  const queries = linesOf(text)
  const parameters = mechanism.parameters.map(([p]) => [p, values[p]?.trim() ?? ''])
  const had = ensemble ? ensemble.answered + ensemble.rejected : 0
  const upTo = Math.min(Math.max(100, 2 * (had + queries.length)), mostQueries)
  const order: Order | null = ensemble && queries.length > 0 && parameters.every(([, v]) => v)
    ? { from: ensemble.ensemble, request: { queries, mechanism: mechanism.name, ...Object.fromEntries(parameters) } } : null
  const { known, again } = useEstimate((o: Order, signal) => gateway.estimateLabels(o.from, o.request, upTo, signal), order)
  const pay = usePayment((o: Order, payment) => gateway.labels(o.from, o.request, payment))

  const load = () => {
    setProblem(null)
    gateway.ensembles().then(list => {
      setEnsembles(list.ensembles)
      if (ensemble) setEnsemble(list.ensembles.find(e => e.ensemble === ensemble.ensemble) ?? null)
    }, setProblem)
  }
  useEffect(() => { if (shown) load() }, [gateway, shown])
  const open = (e: Ensemble) => {
    setProblem(null)
    setBought(null)
    setEnsemble(e)
  }
  const estimate = known?.estimate
  const free = !!estimate && isFree(estimate.worst_case)
  const ready = !!estimate && (free || estimate.affordable) && !running
  const buy = async () => {
    if (!ready || !order) return
    setRunning(true)
    setChanged(false)
    setProblem(null)
    try {
      const answer = await pay(order, estimate.worst_case)
      if (answer) setBought(answer)
      load()
    } catch (e) {
      if (isDearer(e)) setChanged(true)
      else setProblem(e as Problem)
    } finally {
      setRunning(false)
      again()
    }
  }
  return <>
    <h1>Labels</h1>
    {problem && <ProblemBox problem={problem}>{!ensembles && <button onClick={load}>Try again</button>}</ProblemBox>}
    {ensembles && <Ensembles list={ensembles} open={ensemble} onOpen={open} />}
    {ensemble && <div class="ask"><div class="column">
      <section class="question" aria-label="Purchase">
        <h2><bdi>{ensemble.ensemble}</bdi> <span class="muted">{ensemble.classes.length} classes: <bdi>{ensemble.classes.slice(0, 12).join(', ')}{ensemble.classes.length > 12 && ' …'}</bdi></span></h2>
        {ensemble.usage && <Gauge percent={Number(ensemble.usage.percent)} rule={ensemble.usage.rule} />}
        <div class="row">
          <label>Mechanism <select value={mechanism.name} onChange={e => setMechanism(mechanisms.find(m => m.name === e.currentTarget.value)!)}>
            {mechanisms.map(m => <option key={m.name} value={m.name}>{m.title}</option>)}
          </select></label>
          {mechanism.parameters.map(([p, title]) => <label key={p}>{title} <input class="amount" inputMode="decimal" size={6} value={values[p] ?? ''}
            onInput={e => setValues({ ...values, [p]: e.currentTarget.value })} /></label>)}
        </div>
        {!ensemble.sealed_at && <p>Its votes are not final: no label can be bought before a steward seals them.</p>}
        <label for="queries">Queries, by name: one a line, or a file of them</label>
        <textarea id="queries" rows={6} value={text} spellcheck={false} onInput={e => setText(e.currentTarget.value)} />
        <p><input type="file" accept=".csv,.txt,text/*" aria-label="File of names" onChange={async e => {
          const file = await e.currentTarget.files?.[0]?.text()
          if (file === undefined) return
          const rows = cells(file)
          setTable(rows.some(r => r.length > 1) ? { rows, column: 0, headed: true } : null)
          setText(rows.every(r => r.length === 1) ? file : namesOf(rows, 0, true))
        }} /></p>
        {table && <p class="row">
          <label>Column with the names <select value={String(table.column)} onChange={e => choose({ ...table, column: Number(e.currentTarget.value) })}>
            {table.rows[0].map((head, i) => <option key={i} value={String(i)}>{i + 1}: {head}</option>)}
          </select></label>
          <label><input type="checkbox" checked={table.headed} onChange={e => choose({ ...table, headed: e.currentTarget.checked })} /> the first line is a heading</label>
        </p>}
        <p class="row run">
          <button class="primary" disabled={!ready} onClick={buy}>
            {running ? 'Buying …' : !estimate ? 'Buy' : free ? 'Take, free' : `Buy for at most ${price(estimate.worst_case)}`}</button>
          <span class="muted" role="status">{changed ? dearer : !order ? 'Name queries and parameters.' : !known ? 'Estimating …'
            : estimate && !ready && !running ? 'More than what is left.' : ''}</span>
        </p>
      </section>
      {bought && <Bought response={bought} />}
    </div><div class="column">
      <section class="side" aria-label="Estimate">
        <h2>What it costs</h2>
        {known?.problem && <ProblemBox problem={known.problem} />}
        {estimate ? <><Cost estimate={estimate} />{estimate.curve && <Curve curve={estimate.curve} delta={estimate.delta} had={had} want={estimate.queries - estimate.replayed} />}</> : !known?.problem && <p class="muted">The price appears here before anything is paid.</p>}
      </section>
    </div></div>}
  </>
}

const mostQueries = 1_000_000 // that a curve is asked of

// Ensembles are those that the caller may see, with what is final and what they have bought.
function Ensembles({ list, open, onOpen }: { list: Ensemble[]; open: Ensemble | null; onOpen: (e: Ensemble) => void }) {
  if (list.length === 0) return <p>There is no ensemble of which you may buy labels. A steward defines one, and opens an account for you.</p>
  return <section class="card wide ensembles" aria-label="Ensembles">
    <h2>Ensembles</h2>
    <div class="scroll" tabIndex={0} role="region" aria-label="Table of ensembles"><table>
      <thead><tr><th scope="col">ensemble</th><th scope="col">votes</th><th scope="col">dataset</th><th scope="col" class="number">teachers</th>
        <th scope="col" class="number">classes</th><th scope="col" class="number">queries</th><th scope="col" class="number">bought</th></tr></thead>
      <tbody>{list.map(e => <tr key={e.ensemble}>
        <td><button aria-pressed={e.ensemble === open?.ensemble} onClick={() => onOpen(e)}><bdi>{e.ensemble}</bdi></button></td>
        <td class="nowrap">{e.sealed_at ? `sealed ${time(e.sealed_at)}` : e.state === 'loaded' ? 'loaded, not final' : 'none yet'}</td>
        <td><bdi>{e.dataset}</bdi></td>
        {[e.teachers, e.classes.length, e.queries, e.answered + e.rejected].map((n, i) => <td key={i} class="number">{n.toLocaleString('en')}</td>)}
      </tr>)}</tbody>
    </table></div>
  </section>
}

function Cost({ estimate: e }: { estimate: LabelEstimate }) {
  return <>
    <p class="price">{isFree(e.worst_case) ? 'Free' : <>at most {price(e.worst_case)}</>}
      {' '}<span class="muted">{e.epsilon && Number(e.epsilon) > 0 && `ε ${Number(Number(e.epsilon).toPrecision(3))} at δ ${amount(e.delta)}`}</span></p>
    <p>{e.queries} labels, {e.replayed} of them bought before. What is left buys {e.still_buys.toLocaleString('en')} more at this price.</p>
    <p class="muted"><bdi>{e.terms.meaning}</bdi></p>
    {e.notes.length > 0 && <ul class="notes">{e.notes.map(n => <li key={n.code + n.text}><bdi>{n.text}</bdi></li>)}</ul>}
  </>
}

function Bought({ response: r }: { response: LabelResponse }) {
  const label = (l: Label) => l.status === 'rejected' ? null : l.class ?? l.label
  return <section class="answer" aria-label="Labels">
    <p class="headline" role="status">{isFree(r.spent) ? 'Free: you bought these before.' : `Spent ${price(r.spent)}; ${price(r.remaining)} left.`}</p>
    <div class="scroll" tabIndex={0} role="region" aria-label="Table of labels"><table>
      <thead><tr><th scope="col">query</th><th scope="col">label</th><th scope="col">status</th></tr></thead>
      <tbody>{r.labels.slice(0, 1000).map(l => <tr key={l.query}>
        <td><bdi>{l.query}</bdi></td><td><bdi>{label(l) ?? ''}</bdi></td><td>{l.status}</td>
      </tr>)}</tbody>
    </table></div>
    <p class="actions"><button onClick={() => download('labels.csv', lines([['query', 'label', 'status'], ...r.labels.map(l => [l.query, label(l), l.status])]))}>
      Download CSV</button></p>
  </section>
}
