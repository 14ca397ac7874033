// From an empty gateway to the first question: what a steward is led through who has a dataset without a policy.

import { useEffect, useRef, useState } from 'preact/hooks'
import type { Dataset, Gateway, PolicyDraft, Problem } from './api'
import { example } from './ask'
import { Policy } from './policy'
import { ProblemBox } from './problem'

export function FirstPolicy({ gateway, who, dataset, onApplied }: { gateway: Gateway; who: string; dataset: string; onApplied: () => void }) {
  const [draft, setDraft] = useState<PolicyDraft | null>(null)
  const [unit, setUnit] = useState('')
  const [problem, setProblem] = useState<Problem | null>(null)
  const ask = (unit: string) => {
    setProblem(null)
    gateway.draftPolicy(dataset, unit).then(d => { setDraft(d); setUnit(d.unit ?? d.candidates[0] ?? '') }, setProblem)
  }
  useEffect(() => ask(''), [])
  return <div class="steward">
    <section class="card wide" aria-label="First steps">
      <h2>From an empty gateway to the first question</h2>
      <p>Nobody can ask about <strong><bdi>{dataset}</bdi></strong> yet: a policy says what may be asked, and how much may be spent.</p>
      <ol>
        <li>Which column tells one person? What differs by one of them is what answers hide.
          <form class="row" onSubmit={e => { e.preventDefault(); ask(unit.trim()) }}>
            <label>Column <input list="units" value={unit} placeholder="people.person_id" spellcheck={false} onInput={e => setUnit(e.currentTarget.value)} /></label>
            <datalist id="units">{draft?.candidates.map(c => <option key={c} value={c} />)}</datalist>
            <button disabled={!unit.trim()}>Draft a policy</button>
          </form>
          {draft && <p class="muted">{draft.candidates.length === 0 ? 'No column is unique and never NULL: name it.'
            : <>Unique and never NULL: <bdi>{draft.candidates.slice(0, 8).join(', ')}</bdi>{draft.candidates.length > 8 && ' and others'}</>}</p>}
          {problem && <ProblemBox problem={problem}>{!draft && <button onClick={() => ask('')}>Try again</button>}</ProblemBox>}</li>
        <li>Fill in the blanks of the draft below. It was made of the schema; no row was read.
          (<a href="/docs/policy" target="_blank" rel="noopener">What each line means</a>)</li>
        <li>The gateway checks as you type. Read what it finds, then apply the policy.</li>
        <li>Ask the first question.</li>
      </ol>
    </section>
    {draft?.text && <Policy key={draft.unit} gateway={gateway} who={who} dataset={dataset} inForce={{ text: draft.text, tag: null }} onApplied={onApplied} />}
  </div>
}

// FirstQuestion says what can be asked now, and by whom.
export function FirstQuestion({ dataset, mayAsk }: { dataset: Dataset; mayAsk: boolean }) {
  const here = useRef<HTMLElement>(null)
  useEffect(() => { here.current?.scrollIntoView(); here.current?.focus() }, []) // what was applied stands far below
  return <section class="card wide first" aria-label="First question" tabIndex={-1} ref={here}>
    <h2>The policy is in force: ask the first question</h2>
    <pre class="asked"><bdi>{example(dataset)}</bdi></pre>
    {mayAsk ? <p><a class="button" href="#/ask">Ask it</a></p>
      : <p>It stands ready under <em>Ask</em> for everybody whose token has the role <code>analyst</code>, and an account by a line of <code>budgets</code>. Yours
        has not: who spends does not set the limits.</p>}
  </section>
}
