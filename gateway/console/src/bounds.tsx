// What bounds mean in noise, and what they keep: sliders over figures that the policy makes public, and over a report that somebody bought.
// No row is read, and nothing is asked.

import { useState } from 'preact/hooks'
import type { Dataset } from './api'
import { keeps, readReport, type Report } from './report'

// halfWidth is how far Laplace noise is off at most, in 95 of 100 times, where one unit changes all sums together by so much.
export const halfWidth = (sensitivity: number, epsilon: number) => Math.ceil(sensitivity * Math.LN2 * Math.log2(1 / 0.05) / epsilon)

export function Bounds({ dataset }: { dataset: Dataset }) {
  const tables = dataset.tables.filter(t => !t.public)
  const [name, setName] = useState(tables[0]?.name ?? '')
  const table = tables.find(t => t.name === name)
  const [power, setPower] = useState(-1) // of ten: ε
  const [rows, setRows] = useState<number | null>(null)
  const [groups, setGroups] = useState<number | null>(null)
  const [total, setTotal] = useState<number | null>(null)
  const [keys, setKeys] = useState(12)
  const [report, setReport] = useState<Report | null>(null)
  const [wrong, setWrong] = useState('')
  const choose = (name: string) => { setName(name); setRows(null); setGroups(null); setTotal(null) }
  const open = async (file: File) => {
    setReport(null)
    setWrong('')
    try {
      const r = await readReport(file)
      if (r.dataset !== dataset.name || !tables.some(t => t.schema === r.schema && t.name === r.table)) {
        throw new Error(`it is of ${r.schema}.${r.table} of ${r.dataset}, which is no private table here`)
      }
      choose(r.table)
      setReport(r)
    } catch (e) {
      setWrong(e instanceof Error ? e.message : String(e))
    }
  }
  if (!table) return null
  const epsilon = Number((10 ** power).toPrecision(2))
  const maxRows = rows ?? table.max_rows ?? 1
  const maxGroups = groups ?? table.max_groups ?? 1
  const maxTotal = total ?? table.max_rows_total ?? Infinity
  const each = Math.min(maxRows * Math.min(maxGroups, keys), maxTotal) // what one unit adds to all groups together, at most
  const width = (sensitivity: number) => halfWidth(sensitivity, epsilon)
  const numbers = table.columns.filter(c => c.bounds && isFinite(Number(c.bounds.lo)) && isFinite(Number(c.bounds.hi)))
  const bought = report?.table === table.name && report.schema === table.schema ? report : null
  const kept = (bounds: string, column = '') => bought?.histograms.find(h => h.bounds === bounds && h.column === column)?.kept ?? []
  const slider = (title: string, value: number, least: number, set: (n: number) => void, bounds = '') => {
    const marks = kept(bounds)
    const max = Math.max(least, 2 * (marks.find(k => k.high >= 0.999)?.bound ?? 0))
    const said = keeps(marks.filter(k => k.bound <= value).at(-1))
    const shown = isFinite(value) ? value.toLocaleString('en') : 'no bound'
    return <div><label>{title}: {shown}
      <input type="range" min={1} max={max} value={Math.min(value, max)} list={said ? `marks-${bounds}` : undefined} aria-valuetext={said ? `${shown}, ${said}` : undefined}
        onInput={e => set(Number(e.currentTarget.value))} /></label>
      {isFinite(value) && said && <span class="muted">{said}, at ±&nbsp;{width(each).toLocaleString('en')} a count</span>}
      {said && <datalist id={`marks-${bounds}`}>{marks.filter(k => k.bound <= max).map(k => <option key={k.bound} value={k.bound} />)}</datalist>}
    </div>
  }
  return <section class="card wide" aria-label="Bounds">
    <h2>What bounds mean in noise</h2>
    <div class="row"><label>Table <select value={name} onChange={e => choose(e.currentTarget.value)}>
      {tables.map(t => <option key={t.name} value={t.name}>{t.name}</option>)}
    </select></label>
      <label class="unprinted">Report that an analyst bought <input type="file" accept=".json,application/json" onChange={e => {
        const file = e.currentTarget.files?.[0]
        if (file) void open(file)
      }} /></label></div>
    {wrong && <p role="alert">This file is no report to show: <bdi>{wrong}</bdi>.</p>}
    {bought && <p class="muted">Bought for ε <bdi>{bought.epsilon}</bdi>: what bounds of <bdi>{bought.table}</bdi> keep{bought.by.length > 0 && <>, with groups by <bdi>{bought.by.join(', ')}</bdi></>}.
      The file stays in this tab.</p>}
    <div class="sliders unprinted">
      <div><label>ε of the question: {epsilon}<input type="range" min={-3} max={1} step={0.1} value={power} onInput={e => setPower(Number(e.currentTarget.value))} /></label></div>
      {slider('Rows of one unit in a group', maxRows, Math.max(100, 2 * (table.max_rows ?? 1)), setRows, 'max_rows')}
      {slider('Groups of one unit', maxGroups, Math.max(50, 2 * (table.max_groups ?? 1)), setGroups, 'max_groups')}
      {(table.max_rows_total !== undefined || kept('max_rows_total').length > 0) &&
        slider('Rows of one unit in all groups together', maxTotal, Math.max(100, 2 * (table.max_rows_total ?? 1)), setTotal, 'max_rows_total')}
      {slider('Groups in the answer', keys, 100, setKeys)}
    </div>
    <p role="status">A count in each of {keys} groups is off by about ±&nbsp;<strong>{width(each).toLocaleString('en')}</strong> at 95&nbsp;%.</p>
    {numbers.length > 0 && <ul class="notes">{numbers.map(c => {
      const [lo, hi] = [Number(c.bounds!.lo), Number(c.bounds!.hi)]
      const least = keeps(kept('least', c.name).find(k => k.bound >= lo))
      const most = keeps(kept('most', c.name).filter(k => k.bound <= hi).at(-1))
      return <li key={c.name}>the sum of <bdi>{c.name}</bdi>, in [{c.bounds!.lo}, {c.bounds!.hi}]:
        about ±&nbsp;{width(each * Math.max(Math.abs(lo), Math.abs(hi))).toLocaleString('en')}{least && `; the least ${least}`}{most && `; the most ${most}`}</li>
    })}</ul>}
    <p class="muted">Larger bounds leave out less and need more noise. Nothing is changed here: bounds stand in the policy.</p>
  </section>
}
