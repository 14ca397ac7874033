// What a question would cost, and how exact its answer would be.

import type { Amounts, Estimate, OutputEstimate, Problem } from './api'
import { amount, error, isFree, price } from './format'
import type { Known } from './paying'
import { ProblemBox } from './problem'

export function EstimateView({ known, onSQL, onEpsilon }: {
  known: Known<Estimate> | null; onSQL: (sql: string) => void; onEpsilon: (epsilon: string) => void
}) {
  if (!known) return <p class="muted">The price appears here before anything is paid.</p>
  if (known.problem) return <Refused problem={known.problem} onSQL={onSQL} onEpsilon={onEpsilon} />
  const e = known.estimate!
  return <>
    <p class="price">
      {e.replayed ? <>Free <span class="muted">you paid for this before</span></>
        : isFree(e.price) ? <>Free <span class="muted">it reads no private row</span></>
          : <>{price(e.price)} <span class="muted">{e.affordable ? left(e.remaining, e.price) : `only ${price(e.remaining)} left`}</span></>}
    </p>
    {!e.affordable && !e.replayed && e.price.epsilon !== null && Number(e.remaining.epsilon) > 0 && <AskAt epsilon={e.remaining.epsilon!} onEpsilon={onEpsilon} />}
    {e.outputs.length > 0 && <table class="outputs">
      <thead><tr><th scope="col">output</th><th scope="col">± at {Math.round(e.confidence * 1000) / 10}&nbsp;%</th><th scope="col">noise</th></tr></thead>
      <tbody>{e.outputs.map((o, i) => <tr key={i}>
        <td><Name output={o} /></td><td>{errorOf(o)}</td><td>{noise(o)}</td>
      </tr>)}</tbody>
    </table>}
    {e.useful && <p>A row is useful {e.useful.counts
      ? <>where <bdi>{e.useful.output}</bdi> is computed from about {amount(e.useful.needs)} {e.useful.counts} or more</>
      : <>from <bdi>{e.useful.output}</bdi> = {amount(e.useful.needs)} on</>}
      {e.useful.possible !== undefined && <>; at most {e.useful.possible} of {e.useful.of} rows can be</>}.</p>}
    {e.notes.length > 0 && <ul class="notes">{e.notes.map(n => <li key={n.code + n.text}><bdi>{n.text}</bdi></li>)}</ul>}
  </>
}

// Name is that of the columns that are computed from a release, with what is released where that is something else.
function Name({ output: { name, columns } }: { output: OutputEstimate }) {
  if (!columns?.length) return <bdi>{name}</bdi>
  return <><bdi>{columns.join(', ')}</bdi>{!(columns.length === 1 && columns[0] === name) && <><br /><code class="muted"><bdi>{name}</bdi></code></>}</>
}

function errorOf(o: OutputEstimate): string {
  if (o.half_width !== null) return error(o.half_width)
  if (o.rank_error) return `${amount(o.rank_error)} rows`
  if (o.shown_at?.length) return `groups from ${o.shown_at[0].units}`
  return 'none'
}

const noise = (o: OutputEstimate) => (o.selection ?? o.mechanism).replace('discrete_', '').replaceAll('_', ' ')

// left says what remains after a price: of ε or, without one, of ρ. The ledger's own number comes with the answer.
function left(remaining: Amounts, price: Amounts): string {
  for (const [sign, has, costs] of [['ε', remaining.epsilon, price.epsilon], ['ρ', remaining.rho, price.rho]]) {
    if (has !== null && costs !== null) return `about ${sign} ${Number((Number(has) - Number(costs)).toPrecision(6))} left after it`
  }
  return ''
}

// Refused shows why a question is refused, and the question or price that would not be.
function Refused({ problem, onSQL, onEpsilon }: { problem: Problem; onSQL: (sql: string) => void; onEpsilon: (epsilon: string) => void }) {
  const { suggestion, differs, affordable_epsilon: affordable } = problem.extra
  return <ProblemBox problem={problem}>
    {suggestion && <>
      <pre class="suggestion"><bdi>{suggestion}</bdi></pre>
      {differs && <p>Its answer differs: {differs}.</p>}
      <p><button onClick={() => onSQL(suggestion)}>Use this question</button></p>
    </>}
    {affordable && Number(affordable) > 0 && <AskAt epsilon={affordable} onEpsilon={onEpsilon} />}
  </ProblemBox>
}

// AskAt asks the same question at the price that is left.
function AskAt({ epsilon, onEpsilon }: { epsilon: string; onEpsilon: (epsilon: string) => void }) {
  return <p><button onClick={() => onEpsilon(epsilon)}>Ask at ε {amount(epsilon)}</button></p>
}
