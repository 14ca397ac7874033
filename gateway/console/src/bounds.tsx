// What bounds mean in noise: sliders over figures that the policy makes public. No row is read, and nothing is asked.

import { useState } from 'preact/hooks'
import type { Dataset } from './api'

// halfWidth is how far Laplace noise is off at most, in 95 of 100 times, where one unit changes all sums together by so much.
export const halfWidth = (sensitivity: number, epsilon: number) => Math.ceil(sensitivity * Math.LN2 * Math.log2(1 / 0.05) / epsilon)

export function Bounds({ dataset }: { dataset: Dataset }) {
  const tables = dataset.tables.filter(t => !t.public)
  const [name, setName] = useState(tables[0]?.name ?? '')
  const table = tables.find(t => t.name === name)
  const [power, setPower] = useState(-1) // of ten: ε
  const [rows, setRows] = useState<number | null>(null)
  const [groups, setGroups] = useState<number | null>(null)
  const [keys, setKeys] = useState(12)
  if (!table) return null
  const epsilon = Number((10 ** power).toPrecision(2))
  const maxRows = rows ?? table.max_rows ?? 1
  const maxGroups = groups ?? table.max_groups ?? 1
  const each = maxRows * Math.min(maxGroups, keys) // what one unit adds to all groups together, at most
  const width = (sensitivity: number) => halfWidth(sensitivity, epsilon)
  const numbers = table.columns.filter(c => c.bounds && isFinite(Number(c.bounds.lo)) && isFinite(Number(c.bounds.hi)))
  const slider = (title: string, value: number, max: number, set: (n: number) => void) => <label>{title}: {value.toLocaleString('en')}
    <input type="range" min={1} max={max} value={Math.min(value, max)} onInput={e => set(Number(e.currentTarget.value))} /></label>
  return <section class="card wide" aria-label="Bounds">
    <h2>What bounds mean in noise</h2>
    <div class="row"><label>Table <select value={name} onChange={e => { setName(e.currentTarget.value); setRows(null); setGroups(null) }}>
      {tables.map(t => <option key={t.name} value={t.name}>{t.name}</option>)}
    </select></label></div>
    <div class="sliders unprinted">
      <label>ε of the question: {epsilon}<input type="range" min={-3} max={1} step={0.1} value={power} onInput={e => setPower(Number(e.currentTarget.value))} /></label>
      {slider('Rows of one unit in a group', maxRows, Math.max(100, 2 * (table.max_rows ?? 1)), setRows)}
      {slider('Groups of one unit', maxGroups, Math.max(50, 2 * (table.max_groups ?? 1)), setGroups)}
      {slider('Groups in the answer', keys, 100, setKeys)}
    </div>
    <p role="status">A count in each of {keys} groups is off by about ±&nbsp;<strong>{width(each).toLocaleString('en')}</strong> at 95&nbsp;%.</p>
    {numbers.length > 0 && <ul class="notes">{numbers.map(c => <li key={c.name}>the sum of <bdi>{c.name}</bdi>, in [{c.bounds!.lo}, {c.bounds!.hi}]:
      about ±&nbsp;{width(each * Math.max(Math.abs(Number(c.bounds!.lo)), Math.abs(Number(c.bounds!.hi)))).toLocaleString('en')}</li>)}</ul>}
    <p class="muted">Larger bounds leave out less and need more noise. Nothing is changed here: bounds stand in the policy.</p>
  </section>
}
