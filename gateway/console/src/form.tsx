// The policy as a form: what people change most, bound to the text beside it. A change is made in the text, where nothing else moves; the
// gateway's check says what it means.

import { useEffect, useMemo, useRef, useState } from 'preact/hooks'
import { Problem, type Dataset, type PolicyReview } from './api'
import { halfWidth } from './bounds'
import type { Edited, Path, Policy } from './edits'
import { ProblemBox } from './problem'

type Edits = typeof import('./edits')

const longest = 100_000 // characters of a text that is read again at each key
const assumed = { epsilon: 0.1, groups: 12 } // as the gateway's check says what bounds do

// useEdits loads what reads and changes texts: a file of its own, since few need it.
function useEdits(): [Edits | null, Problem | null, () => void] {
  const [edits, setEdits] = useState<Edits | null>(null)
  const [problem, setProblem] = useState<Problem | null>(null)
  const load = () => {
    setProblem(null)
    const from = '/console/edits.js'
    import(from).then(setEdits, () => setProblem(Problem.unreachable()))
  }
  useEffect(load, [])
  return [edits, problem, load]
}

export function PolicyForm({ text, review, dataset, onChange }: {
  text: string; review: PolicyReview | undefined; dataset: Dataset | undefined; onChange: (text: string) => void
}) {
  const [edits, problem, again] = useEdits()
  const [refused, setRefused] = useState('')
  const policy = useMemo(() => edits && text.length <= longest ? new edits.Policy(text) : null, [edits, text])
  const good = useRef<Policy | null>(null) // what is shown while the text is not right: places and folds stay
  if (policy && !policy.broken) good.current = policy
  useEffect(() => setRefused(''), [text])
  if (problem) return <ProblemBox problem={problem}><button onClick={again}>Try again</button></ProblemBox>
  if (!edits) return <p class="muted">Loading the form …</p>
  if (!policy) return <p class="muted">This text is too long for a form: change it as text.</p>
  const put = (e: Edited) => { if (e.refused) setRefused(e.refused); else if (e.text !== text) onChange(e.text) }
  const shown = good.current
  const raw = (path: Path, yaml: string) => put(policy.set(path, yaml))
  const form = shown && { policy: shown, raw, set: (path: Path, value: string) => raw(path, value && edits.scalar(value)), scalar: edits.scalar }
  return <div class="policy-form" role="group" aria-label="The policy as a form">
    <p role="status" class={refused ? undefined : 'muted'}>{policy.broken ? `Line ${policy.broken} of the text is not right: the form waits until it is.`
      : refused || 'What people change most. All else, and what a line means, stands in the text; each change is made there, and comments stay.'}</p>
    {form && <fieldset class="bare" disabled={policy.broken > 0}>
      {form.policy.keys(['tables']).map(name => <TableForm key={name} {...form} name={name} review={review} dataset={dataset} />)}
      {form.policy.has(['budgets']) && <details open><summary>Budgets</summary>
        {Array.from({ length: form.policy.size(['budgets']) }, (_, i) => <BudgetForm key={i} {...form} at={['budgets', i]} />)}
      </details>}
      <details><summary>Answers that exist</summary>
        <div class="fields">
          <Field {...form} at={['data_version']} title="Name of the state of the data" />
          <Check {...form} at={['share_releases']} title="One analyst's answer is free for others" />
          <Check {...form} at={['refresh_charges']} title="A new version of a copy is charged anew" />
          <Field {...form} at={['max_failures']} title="Failures within a day that stop an analyst" number />
        </div>
      </details>
    </fieldset>}
  </div>
}

interface Form { policy: Policy; set: (at: Path, value: string) => void; raw: (at: Path, yaml: string) => void; scalar: (text: string) => string }

function TableForm({ name, review, dataset, ...form }: Form & { name: string; review: PolicyReview | undefined; dataset: Dataset | undefined }) {
  const { policy, raw } = form
  const at = (...more: Path): Path => ['tables', name, ...more]
  const [column, setColumn] = useState('')
  const open = !['', 'false'].includes(policy.value(at('public')))
  const noise = review?.noise.find(n => n.table === name)
  const known = dataset?.tables.find(t => t.name === name || `${t.schema}.${t.name}` === name)
  const columns = policy.keys(at('columns'))
  const most = (key: string) => Number(policy.value(at(key)) || Infinity)
  const kind = ['row', 'column', 'via'].find(k => policy.has(at('unit', k)))
  const units = kind === 'row' ? 1 : Math.min(most('max_rows') * Math.min(most('max_groups'), assumed.groups), most('max_rows_total')) // rows of one unit
  return <details>
    <summary><code><bdi>{name}</bdi></code> <span class="muted">{open ? 'public' : kind === 'row' ? 'a row is one unit' : 'many rows of one unit'}</span></summary>
    {open ? <p class="muted">Nobody's secret: it is read as it is.</p> : <>
      <div class="fields">
        {kind === 'row' && <Field {...form} at={at('unit', 'row')} title="Column of which each row is one person" of={name} />}
        {kind === 'column' && <Field {...form} at={at('unit', 'column')} title="Column that says whose a row is" of={name} />}
        {kind === 'via' && <Field {...form} at={at('unit', 'via')} title="Foreign key that leads to the person" of={name} />}
        {kind !== 'row' && <>
          <Field {...form} at={at('max_rows')} title="Rows of one unit in a group" of={name} number slider={100} />
          <Field {...form} at={at('max_groups')} title="Groups of one unit" of={name} number slider={50} />
          <Field {...form} at={at('max_rows_total')} title="Rows of one unit in all groups together" of={name} number />
          <Field {...form} at={at('prepare', 'max_rows')} empties={at('prepare')} title="Rows of one unit in a prepared copy" of={name} number />
          {policy.has(at('prepare')) && <Check {...form} at={at('require_prepared')} title="Only the copy is ever read" of={name} />}
        </>}
      </div>
      {noise && <p role="status"><bdi>{noise.text}</bdi>; sums likewise</p>}
      {columns.length > 0 && <div class="scroll" tabIndex={0} role="region" aria-label={`Columns of ${name}`}><table>
        <thead><tr><th scope="col">column</th><th scope="col">shown</th><th scope="col">least</th><th scope="col">most</th><th scope="col">sum</th></tr></thead>
        <tbody>{columns.map(c => <ColumnForm key={c} {...form} table={name} name={c} units={units} />)}</tbody>
      </table></div>}
      <form class="row more" onSubmit={e => {
        e.preventDefault()
        raw(at('columns', column.trim(), 'bounds'), '[___, ___]')
        setColumn('')
      }}>
        <label>Bounds for another column of {name} <input list={`columns-${name}`} value={column} spellcheck={false} onInput={e => setColumn(e.currentTarget.value)} /></label>
        <datalist id={`columns-${name}`}>{known?.columns.filter(c => !columns.includes(c.name)).map(c => <option key={c.name} value={c.name} />)}</datalist>
        <button disabled={!column.trim() || columns.includes(column.trim())}>Add</button>
      </form>
    </>}
  </details>
}

// ColumnForm is a column whose values are bounded, or not shown at all. Domains are public lists, which stand in the text.
function ColumnForm({ table, name, units, policy, set, raw, scalar }: Form & { table: string; name: string; units: number }) {
  const at = (...more: Path): Path => ['tables', table, 'columns', name, ...more]
  const [lo, hi] = [policy.value(at('bounds', 0)), policy.value(at('bounds', 1))]
  const hidden = policy.value(at('expose')) === 'false'
  const blank = (v: string) => v === '' || v === '___'
  const bounds = (lo: string, hi: string) => raw(at('bounds'), !blank(lo) || !blank(hi) ? `[${scalar(lo || '___')}, ${scalar(hi || '___')}]` : '')
  const largest = Math.max(Math.abs(Number(lo)), Math.abs(Number(hi)))
  const off = policy.alias(at('bounds'))
  const input = (title: string, value: string, put: (v: string) => void) => <Input size={8} value={value} off={off} put={put} label={`${title} of ${table}.${name}`} />
  return <tr>
    <th scope="row"><bdi>{name}</bdi></th>
    <td><input type="checkbox" checked={!hidden} disabled={policy.alias(at('expose'))} aria-label={`Show ${table}.${name} to analysts`}
      onChange={e => set(at('expose'), e.currentTarget.checked ? '' : 'false')} /></td>
    {hidden ? <td colSpan={3} class="muted">does not exist for analysts</td>
      : policy.has(at('domain')) ? <td colSpan={3} class="muted">a domain{policy.size(at('domain')) > 0 && ` of ${policy.size(at('domain')).toLocaleString('en')} values`}</td>
      : policy.has(at('keys')) ? <td colSpan={3} class="muted">private keys</td>
      : <>
        <td>{input('Least', lo, v => bounds(v, hi))}</td><td>{input('Most', hi, v => bounds(lo, v))}</td>
        <td class="nowrap">{lo && hi && isFinite(largest * units) ? `± ${halfWidth(units * largest, assumed.epsilon).toLocaleString('en')}` : ''}</td>
      </>}
  </tr>
}

function BudgetForm({ at, ...form }: Form & { at: Path }) {
  const { policy } = form
  const [group, analyst] = [policy.value([...at, 'group']), policy.value([...at, 'analyst'])]
  const who = group ? `${policy.has([...at, 'per']) ? 'each of' : 'together'} ${group}` : analyst || 'all together'
  const what = policy.value([...at, 'form'])
  return <fieldset>
    <legend><bdi>{who}</bdi> <span class="muted">{what}</span></legend>
    <div class="fields">
      {what === 'zcdp' ? <Field {...form} at={[...at, 'rho']} title="ρ" of={who} decimal /> : <Field {...form} at={[...at, 'epsilon']} title="ε" of={who} decimal slider={50} />}
      {what !== 'pure' && <Field {...form} at={[...at, 'delta']} title="δ" of={who} decimal />}
      <Field {...form} at={[...at, 'max_epsilon_per_query']} title="ε of one question at most" of={who} decimal />
      <Field {...form} at={[...at, 'default_epsilon']} title="ε of a question that names none" of={who} decimal />
      <Check {...form} at={[...at, 'replay_only']} title="Replays only" of={who} />
    </div>
  </fieldset>
}

// Field is one value: what is written there, in the text as in the form. An empty one is taken out.
function Field({ policy, set, raw, at, title, of, number, decimal, slider, empties }: Form & {
  at: Path; title: string; of?: string; number?: boolean; decimal?: boolean; slider?: number; empties?: Path
}) {
  const value = policy.value(at)
  const off = policy.alias(at)
  const name = of ? `${title}: ${of}` : title
  const put = (v: string) => v || !empties ? set(at, v) : raw(empties, '')
  const most = Math.max(slider ?? 0, 2 * Number(value) || 0)
  return <div>
    <label>{title} <Input size={10} value={value} off={off} label={name} put={put}
      mode={number ? 'numeric' : decimal ? 'decimal' : undefined} invalid={(number || decimal) && value !== '' && !(Number(value) > 0)} /></label>
    {slider !== undefined && <input type="range" aria-label={`${name}, slider`} min={decimal ? 0.1 : 1} max={most} step={decimal ? 0.1 : 1} disabled={off}
      value={Number(value) || 0} onInput={e => put(e.currentTarget.value)} />}
    {off && <span class="muted">written elsewhere in the text</span>}
  </div>
}

// Input hands on what is typed; that it is empty only when it is left: who types another value does not take the line away on the way.
function Input({ value, put, label, size, off, mode, invalid }: {
  value: string; put: (v: string) => void; label: string; size: number; off: boolean; mode?: 'numeric' | 'decimal'; invalid?: boolean
}) {
  const [empty, setEmpty] = useState(false)
  const typed = (v: string) => { setEmpty(v === ''); if (v) put(v) }
  return <input class="amount" size={size} value={empty ? '' : value} disabled={off} aria-label={label} inputMode={mode} aria-invalid={invalid} spellcheck={false}
    onInput={e => typed(e.currentTarget.value.trim())}
    onBlur={() => { if (empty) put(''); setEmpty(false) }} />
}

function Check({ policy, set, at, title, of }: Form & { at: Path; title: string; of?: string }) {
  return <div><label><input type="checkbox" checked={policy.value(at) === 'true'} disabled={policy.alias(at)} aria-label={of ? `${title}: ${of}` : title}
    onChange={e => set(at, e.currentTarget.checked ? 'true' : '')} /> {title}</label></div>
}
