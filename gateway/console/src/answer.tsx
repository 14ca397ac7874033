// An answer: what it cost, its figure, its notes, and its table.

import { Component, type ComponentChildren } from 'preact'
import { useState } from 'preact/hooks'
import type { Bounds, Column, QueryRequest, Result, Value } from './api'
import { Chart } from './chart'
import { csv, download } from './csv'
import { figure, isNoisy } from './format'
import { snippets } from './snippets'

const page = 200 // rows that are shown at once: an answer may have a hundred thousand

export function AnswerView({ result, request, headline }: { result: Result; request: QueryRequest; headline: string }) {
  const single = result.rows.length === 1 && result.columns.every(c => c.kind !== 'key')
  const { useful } = result
  return <section class="answer" aria-label="Answer">
    <p class="headline" role="status">
      {useful && useful.rows < useful.of && <>
        {useful.of === 1 ? 'This is mostly noise.' : `${useful.rows} of ${useful.of} rows are useful; the rest is mostly noise.`}<br />
      </>}
      {headline}
    </p>
    <pre class="asked"><bdi>{request.sql}</bdi></pre>
    <Guard result={result}>{single ? <Cards result={result} /> : <Chart result={result} />}</Guard>
    {result.notes.length > 0 && <ul class="notes">
      {result.notes.map(n => <li key={n.code + n.text}><bdi>{n.text}</bdi></li>)}
    </ul>}
    <Rows result={result} />
    <Actions result={result} request={request} />
  </section>
}

// Guard keeps the table and the CSV of an answer when its figure cannot be drawn.
class Guard extends Component<{ result: Result; children: ComponentChildren }, { failed: Result | null }> {
  state = { failed: null as Result | null }
  componentDidCatch() { this.setState({ failed: this.props.result }) }
  render() {
    return this.state.failed === this.props.result ? <p class="muted">This answer has no figure; the table has all of it.</p> : this.props.children
  }
}

// Cards show an answer of one row: each value with its interval.
function Cards({ result }: { result: Result }) {
  return <dl class="cards">
    {result.columns.map((c, i) => <div key={i}>
      <dt><bdi>{c.name}</bdi></dt>
      <dd>
        <span class="value">{figure(result.rows[0][i], c.digits)}</span>
        <Interval column={c} bounds={result.intervals[0]?.[i]} />
        <Bias column={c} />
      </dd>
    </div>)}
  </dl>
}

function Interval({ column, bounds }: { column: Column; bounds: Bounds | undefined }) {
  if (!bounds) return null
  return <span class="interval">{bounds[0] === null ? '−∞' : figure(bounds[0], column.digits, 'floor')} to{' '}
    {bounds[1] === null ? '∞' : figure(bounds[1], column.digits, 'ceil')}</span>
}

// Bias marks what bounds may have moved: intervals do not include that.
function Bias({ column }: { column: Column }) {
  if (!column.bias) return null
  return <span class="bias">{column.bias === 'low' ? 'may be low' : 'may be off'}</span>
}

function Rows({ result }: { result: Result }) {
  const [shown, setShown] = useState(page)
  const { columns, rows, intervals } = result
  const withInterval = columns.map((c, j) => isNoisy(c) && intervals.some(row => row?.[j]))
  return <>
    <div class="scroll" tabIndex={0} role="region" aria-label="Table of the answer">
      <table>
        <thead><tr>
          {columns.map((c, j) => <>
            <th key={j} scope="col" class={alignment(c)}><bdi>{c.name}</bdi> <Bias column={c} /></th>
            {withInterval[j] && <th key={`${j}i`} scope="col">interval</th>}
          </>)}
        </tr></thead>
        <tbody>
          {rows.slice(0, shown).map((row, i) => <tr key={i}>
            {row.map((v, j) => <>
              <td key={j} class={alignment(columns[j])}><Cell value={v} column={columns[j]} /></td>
              {withInterval[j] && <td key={`${j}i`} class="muted"><Interval column={columns[j]} bounds={intervals[i]?.[j]} /></td>}
            </>)}
          </tr>)}
        </tbody>
      </table>
    </div>
    {rows.length > shown && <p class="more">
      {shown.toLocaleString('en')} of {rows.length.toLocaleString('en')} rows.{' '}
      <button onClick={() => setShown(shown + 10 * page)}>Show more</button>
    </p>}
    {rows.length === 0 && <p>No rows.</p>}
  </>
}

const numeric = /^(int|bigint|smallint|integer|numeric|double|real|float|decimal)/
const alignment = (c: Column) => isNoisy(c) || numeric.test(c.type) ? 'number' : undefined

function Cell({ value, column }: { value: Value; column: Column }) {
  if (value === null) return <em class="muted">NULL</em>
  return <bdi>{isNoisy(column) ? figure(value, column.digits) : String(value)}</bdi>
}

function Actions({ result, request }: { result: Result; request: QueryRequest }) {
  const [said, setSaid] = useState('')
  const [byHand, setByHand] = useState('')
  // A page that came over plain HTTP has no clipboard, and a browser may refuse one: then the text is shown, to be copied by hand.
  const copy = async (name: string, text: string) => {
    try {
      await navigator.clipboard.writeText(text)
      setByHand('')
      setSaid(`Copied for ${name}.`)
    } catch {
      setByHand(text)
      setSaid('The browser does not let this page copy: here is the text.')
    }
  }
  return <><p class="actions">
    <button onClick={() => download('answer.csv', csv(result))}>Download CSV</button>
    {snippets.map(s => <button key={s.name} onClick={() => copy(s.name, s.text(request, location.origin))}>Copy as {s.name}</button>)}
    <span role="status" class="muted">{said}</span>
  </p>
    {byHand && <textarea key={byHand} readOnly rows={4} value={byHand} aria-label="Text to copy" ref={e => e?.select()} />}
  </>
}
