// The policy of a dataset: its text, what the gateway finds in it, what would change, and applying it.

import { useEffect, useRef, useState } from 'preact/hooks'
import type { Dataset, Finding, Gateway, PolicyDocument, PolicyReview, Problem, Signature } from './api'
import { command } from './command'
import { downloadFile } from './csv'
import { PolicyForm } from './form'
import { useEstimate } from './paying'
import { ProblemBox } from './problem'
import { Signing } from './signing'

const blank = '___' // of a draft: what somebody has to know

// blanksOf is where they stand, those of comments apart.
function blanksOf(text: string): number[] {
  return [...text.matchAll(/___/g)].map(m => m.index).filter(at => !text.slice(text.lastIndexOf('\n', at) + 1, at).includes('# '))
}

export function Policy({ gateway, who, dataset, described, inForce, onApplied }: {
  gateway: Gateway; who: string; dataset: string; described?: Dataset; inForce: PolicyDocument; onApplied: () => void
}) {
  const [text, setText] = useState(inForce.text)
  const [editing, setEditing] = useState(inForce.tag === null)
  const [problem, setProblem] = useState<Problem | null>(null)
  const [running, setRunning] = useState(false)
  const [agreed, setAgreed] = useState(false)
  const [approval, setApproval] = useState<Signature | null>(null)
  const box = useRef<HTMLTextAreaElement>(null)
  const { known } = useEstimate((t: string, signal) => gateway.checkPolicy(dataset, t, signal), editing ? text : null)
  const review = known?.estimate
  const changed = text !== inForce.text
  const first = inForce.tag === null
  const blanks = blanksOf(text)
  const write = (text: string) => { setText(text); setAgreed(false) }
  const select = (from: number, to: number) => {
    if (!box.current) return
    box.current.focus()
    box.current.setSelectionRange(from, to)
    const line = text.slice(0, from).split('\n').length
    box.current.scrollTop = Math.max(0, (line - 4) / text.split('\n').length * box.current.scrollHeight)
  }
  const goTo = (line: number) => {
    const from = text.split('\n').slice(0, line - 1).join('\n').length + (line > 1 ? 1 : 0)
    select(from, (text + '\n').indexOf('\n', from))
  }
  const nextBlank = () => {
    const after = box.current?.selectionEnd ?? 0
    const from = blanks.find(at => at >= after) ?? blanks[0]
    select(from, from + blank.length)
  }
  const apply = async () => {
    setRunning(true)
    setProblem(null)
    try {
      await gateway.applyPolicy(dataset, text, inForce.tag, approval)
      onApplied()
    } catch (e) {
      setProblem(e as Problem)
    } finally {
      setRunning(false)
      setAgreed(false)
    }
  }
  return <section class="card wide" aria-label="Policy">
    <h2>{first ? 'A first policy' : 'Policy in force'}</h2>
    {!editing && <>
      <pre class="scroll" tabIndex={0} role="region" aria-label="Text of the policy"><bdi>{inForce.text}</bdi></pre>
      <p class="more unprinted"><button onClick={() => setEditing(true)}>Edit</button></p>
    </>}
    {editing && <div class="unprinted">
      <div class="beside">
        <PolicyForm text={text} review={review} dataset={described} onChange={write} />
        <div>
          <label for="policy">The policy as YAML; the gateway checks it as you type and changes nothing</label>
          <textarea id="policy" ref={box} class="code" rows={18} value={text} spellcheck={false} onInput={e => write(e.currentTarget.value)} />
        </div>
      </div>
      {blanks.length > 0 && <p><button onClick={nextBlank}>Next blank</button> <span class="muted">{blanks.length} {blanks.length === 1 ? 'blank is' : 'blanks are'} to be filled in, from what
        everybody knows and never by looking at the table.</span></p>}
      <p class="muted" role="status">{!known ? 'Checking …' : review ? found(review) : ''}</p>
      {known?.problem && <ProblemBox problem={known.problem} />}
      {review && <Findings title="What is wrong" list={review.problems} goTo={goTo} />}
      {review && <Findings title="What to know" list={review.warnings} goTo={goTo} />}
      {review && review.changes.length > 0 && <>
        <h3>What it changes</h3>
        <ul class="notes">{review.changes.map(c => <li key={c.effect + c.text}><strong>{c.effect}</strong>: <bdi>{c.text}</bdi></li>)}</ul>
      </>}
      {review?.renews && <p class="muted"><bdi>{review.renews}</bdi></p>}
      {review && review.noise.length > 0 && <>
        <h3>What the bounds do</h3>
        <ul class="notes">{review.noise.map(n => <li key={n.table}><bdi>{n.table}</bdi>: <bdi>{n.text}</bdi></li>)}</ul>
      </>}
      {changed && !first && <Difference from={inForce.text} to={text} />}
      {problem && <ProblemBox problem={problem} />}
      {(review?.two_for?.length || problem?.code === 'policy/signature') && <Approval key={text} who={who} dataset={dataset} ledger={review?.ledger} text={text} tag={inForce.tag}
        kinds={review?.two_for ?? []} onSigned={setApproval} />}
      <p class="row">
        <label><input type="checkbox" checked={agreed} onChange={e => setAgreed(e.currentTarget.checked)} /> I have read what it changes</label>
        <button class="primary" disabled={!agreed || !changed && !first || running || !review || review.in_force || review.problems.length > 0} onClick={apply}>
          {running ? 'Applying …' : 'Apply'}</button>
        {!first && <button onClick={() => { setEditing(false); setText(inForce.text); setProblem(null) }}>Leave it as it is</button>}
      </p>
    </div>}
  </section>
}

// Approval is a second steward's signature under exactly this text: another text takes another one.
function Approval({ who, dataset, ledger, text, tag, kinds, onSigned }: {
  who: string; dataset: string; ledger?: string; text: string; tag: string | null; kinds: string[]; onSigned: (s: Signature | null) => void
}) {
  const [digest, setDigest] = useState('')
  useEffect(() => {
    onSigned(null)
    crypto.subtle?.digest('SHA-256', new TextEncoder().encode(text)).then(sum => setDigest([...new Uint8Array(sum)].map(b => b.toString(16).padStart(2, '0')).join('')))
  }, [])
  const lines = ['noisegate policy/2', ledger && `ledger: ${JSON.stringify(ledger)}`, `dataset: ${JSON.stringify(dataset)}`, `replaces version: ${tag?.replaceAll('"', '') ?? 0}`,
    digest && `sha256 of the new text: ${digest}`, `proposer: ${JSON.stringify(who)}`].filter(Boolean).join('\n')
  return <>
    <p>A second steward has to sign this change{kinds.length > 0 && <>, for: <bdi>{kinds.join(', ')}</bdi></>}.
      {' '}<button onClick={() => downloadFile('policy.yaml', new Blob([text], { type: 'application/yaml' }))}>Download the text to sign</button></p>
    <Signing open onSigned={onSigned} lines={lines} commands={[{ title: 'The other steward',
      text: command(['policy', 'sign', 'policy.yaml'], { for: who, as: 'NAME', key: 'THEIR.key' }) }]} />
  </>
}

function found(r: PolicyReview): string {
  if (r.problems.length > 0) return `It cannot be applied: ${r.problems.length} ${r.problems.length === 1 ? 'thing is' : 'things are'} wrong.`
  if (r.in_force) return 'It is what is in force.'
  return r.two_for?.length ? 'It can be applied once a second steward has signed it.' : 'It can be applied.'
}

function Findings({ title, list, goTo }: { title: string; list: Finding[]; goTo: (line: number) => void }) {
  if (list.length === 0) return null
  return <>
    <h3>{title}</h3>
    <ul class="findings">{list.map(f => <li key={`${f.line} ${f.text}`}>
      {f.line > 0 && <button onClick={() => goTo(f.line)}>Line {f.line}</button>} <bdi>{f.text}</bdi>{f.hint && <span class="muted"> <bdi>{f.hint}</bdi></span>}
    </li>)}</ul>
  </>
}

// Difference shows lines that go and lines that come, with three around them.
function Difference({ from, to }: { from: string; to: string }) {
  const lines = difference(from.split('\n'), to.split('\n'))
  const near = lines.map((_, i) => lines.slice(Math.max(0, i - 3), i + 4).some(l => l.sign !== ' '))
  return <>
    <h3>Before and after</h3>
    <pre class="scroll difference" tabIndex={0} role="region" aria-label="Before and after">{lines.map((l, i) => near[i]
      ? <bdi key={i} class={l.sign === '+' ? 'comes' : l.sign === '-' ? 'goes' : undefined}>{`${l.sign} ${l.text}\n`}</bdi>
      : near[i - 1] ? <span key={i}>…{'\n'}</span> : null)}</pre>
  </>
}

export interface Line { sign: ' ' | '+' | '-'; text: string }

// difference is a shortest list of lines that go and come. What both texts begin and end with is the same.
export function difference(a: string[], b: string[]): Line[] {
  let head = 0
  while (head < a.length && head < b.length && a[head] === b[head]) head++
  let tail = 0
  while (tail < a.length - head && tail < b.length - head && a[a.length - 1 - tail] === b[b.length - 1 - tail]) tail++
  const [x, y] = [a.slice(head, a.length - tail), b.slice(head, b.length - tail)]
  const same = (text: string): Line => ({ sign: ' ', text })
  const around = (middle: Line[]) => [...a.slice(0, head).map(same), ...middle, ...a.slice(a.length - tail).map(same)]
  if (x.length * y.length > 4_000_000) return around([...x.map(text => ({ sign: '-' as const, text })), ...y.map(text => ({ sign: '+' as const, text }))])
  const common = Array.from({ length: x.length + 1 }, () => new Uint32Array(y.length + 1)) // the longest common rest from i and j
  for (let i = x.length - 1; i >= 0; i--) {
    for (let j = y.length - 1; j >= 0; j--) common[i][j] = x[i] === y[j] ? common[i + 1][j + 1] + 1 : Math.max(common[i + 1][j], common[i][j + 1])
  }
  const middle: Line[] = []
  for (let i = 0, j = 0; i < x.length || j < y.length;) {
    if (i < x.length && j < y.length && x[i] === y[j]) { middle.push(same(x[i])); i++; j++ }
    else if (j >= y.length || i < x.length && common[i + 1][j] >= common[i][j + 1]) middle.push({ sign: '-', text: x[i++] })
    else middle.push({ sign: '+', text: y[j++] })
  }
  return around(middle)
}
