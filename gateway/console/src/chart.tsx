// The figure of an answer, with an interval at each value. The type of the key says which: bars over names, points over numbers and dates.

import type { ComponentChildren } from 'preact'
import { useEffect, useRef, useState } from 'preact/hooks'
import type { Column, Result, Value } from './api'
import { downloadPNG, downloadSVG } from './drawing'
import { figure, isNoisy } from './format'

// Mark is one value of the figure. low and high are its interval; null where it has none, or an end has none.
export interface Mark { key: Value[]; value: number; low: number | null; high: number | null }

const mostBars = 40 // that one can look at
const mostPoints = 2000 // that a browser draws at once

export function Chart({ result }: { result: Result }) {
  const values = result.columns.flatMap((c, j) => isNoisy(c) && result.rows.some(row => typeof row[j] === 'number') ? [j] : [])
  const [wanted, setWanted] = useState(0)
  const [kind, setKind] = useState<Kind>('points') // of keys that have an order; names have bars
  const [box, width] = useWidth()
  const keys = result.columns.flatMap((c, j) => c.kind === 'key' ? [j] : [])
  if (values.length === 0 || keys.length === 0) return null
  const chosen = values[wanted] ?? values[0]
  const marks = marksOf(result, keys, chosen)
  if (marks.length === 0) return null
  const axis = keys.length === 1 && position(result.columns[keys[0]])
  const ordered = kind !== 'bars' && axis
  const column = result.columns[chosen]
  const most = ordered ? mostPoints : mostBars
  const drawn = marks.slice(0, most)
  return <figure ref={box}>
    {values.length > 1 && <div class="choices" role="group" aria-label="Output in the figure">
      {values.map((j, i) => <button key={j} aria-pressed={j === chosen} onClick={() => setWanted(i)}><bdi>{result.columns[j].name}</bdi></button>)}
    </div>}
    {axis && <div class="choices" role="group" aria-label="Kind of figure">
      {(['points', 'line', 'bars'] as Kind[]).map(k => <button key={k} aria-pressed={k === kind} onClick={() => setKind(k)}>{k[0].toUpperCase() + k.slice(1)}</button>)}
    </div>}
    {width > 0 && (ordered
      ? <Points marks={drawn} column={column} width={width} axis={ordered} kind={kind} />
      : <Bars marks={drawn} column={column} width={width} />)}
    <figcaption>
      <bdi>{column.name}</bdi> by {keys.map((j, i) => <>{i > 0 && ', '}<bdi key={j}>{result.columns[j].name}</bdi></>)};
      lines show where the number without noise lies{marks.length > most && `; the first ${most.toLocaleString('en')} of ${marks.length.toLocaleString('en')} groups`}
    </figcaption>
    <p class="actions unprinted">
      <button onClick={() => { const svg = box.current?.querySelector('svg'); if (svg) downloadSVG(svg) }}>Download SVG</button>
      <button onClick={() => { const svg = box.current?.querySelector('svg'); if (svg) downloadPNG(svg) }}>Download PNG</button>
    </p>
  </figure>
}

type Kind = 'points' | 'line' | 'bars'

function marksOf(result: Result, keys: number[], value: number): Mark[] {
  return result.rows.flatMap((row, i) => {
    const v = row[value]
    if (typeof v !== 'number') return []
    const bounds = result.intervals[i]?.[value]
    const [low, high] = [bounds?.[0], bounds?.[1]].map(b => typeof b === 'number' ? b : null)
    return [{ key: keys.map(k => row[k]), value: v, low, high }]
  })
}

// Axis says where a key stands, and whether that is a time. The column's type decides: whole numbers beyond 2^53 come as texts too.
interface Axis { at: (v: Value) => number; time: boolean }

// position gives the axis of keys that have an order and distances; null for others.
function position(key: Column): Axis | null {
  if (/^(int|bigint|smallint|integer|numeric|double|real)/.test(key.type)) return { at: v => v === null ? NaN : Number(v), time: false }
  if (/^(date|timestamp)/.test(key.type)) return { at: v => v === null ? NaN : Date.parse(String(v)), time: true }
  return null
}

// useWidth measures a box, so that texts in it have their own size at every width.
export function useWidth() {
  const box = useRef<HTMLElement>(null)
  const [width, setWidth] = useState(0)
  useEffect(() => {
    const observer = new ResizeObserver(([entry]) => setWidth(Math.floor(entry.contentRect.width)))
    if (box.current) observer.observe(box.current)
    return () => observer.disconnect()
  }, [])
  return [box, width] as const
}

// scale maps an interval of numbers, which has 0 in it, to one of pixels, with round marks.
function scale(marks: Mark[], from: number, to: number, zero: boolean, count: number) {
  const all = marks.flatMap(m => [m.value, m.low ?? m.value, m.high ?? m.value])
  if (zero) all.push(0)
  let [low, high] = [all.reduce((a, b) => Math.min(a, b)), all.reduce((a, b) => Math.max(a, b))]
  const apart = Math.max(1, Math.abs(low) * 1e-6) // large enough to change a large number
  if (low === high) [low, high] = [low - apart, high + apart]
  const rough = (high - low) / count
  const power = 10 ** Math.floor(Math.log10(rough))
  const step = power * ([1, 2, 5].find(n => n * power >= rough) ?? 10)
  const first = Math.ceil(low / step) * step
  const ticks = Array.from({ length: Math.floor((high - first) / step + 1e-9) + 1 }, (_, i) => first + i * step)
  return { at: (v: number) => from + (v - low) / (high - low) * (to - from), ticks }
}

const compact = new Intl.NumberFormat('en', { notation: 'compact', maximumFractionDigits: 2 })
const label = (v: Value) => v === null ? 'NULL' : String(v) === '' ? '(empty)' : String(v)

// short cuts a text to a number of pixels, by the width of a common letter.
function short(text: string, pixels: number): string {
  const letters = [...text]
  const fit = Math.max(3, Math.floor(pixels / 7))
  return letters.length <= fit ? text : letters.slice(0, fit - 1).join('') + '…'
}

// isolated keeps a text from turning the direction of what stands around it.
const isolated = (text: string) => `\u2068${text}\u2069`

function Plot({ width, height, name, children }: { width: number; height: number; name: string; children: ComponentChildren }) {
  return <svg width={width} height={height} role="img" aria-label={name}>{children}</svg>
}

function Bars({ marks, column, width }: { marks: Mark[]; column: Column; width: number }) {
  const names = marks.map(m => m.key.map(label).join(' · '))
  const longest = names.reduce((n, name) => Math.max(n, [...name].length), 0)
  const left = Math.min(longest * 7 + 12, width * 0.35)
  const right = width - 70
  const line = 26
  const height = marks.length * line + 24
  const x = scale(marks, left, right, true, Math.max(2, Math.floor((right - left) / 90)))
  return <Plot width={width} height={height} name={`Bars: ${isolated(column.name)} of ${marks.length} groups. The table below has the numbers.`}>
    {x.ticks.map(t => <g key={t} class="axis">
      <line x1={x.at(t)} x2={x.at(t)} y1={0} y2={height - 20} />
      <text x={x.at(t)} y={height - 5} text-anchor="middle">{compact.format(t)}</text>
    </g>)}
    {marks.map((m, i) => {
      const y = i * line + line / 2
      return <g key={i}>
        <title>{`${isolated(names[i])}: ${figure(m.value, column.digits)}`}</title>
        <text class="key" x={left - 8} y={y + 4} text-anchor="end">{isolated(short(names[i], left - 12))}</text>
        <rect class="bar" x={Math.min(x.at(0), x.at(m.value))} y={y - 8} width={Math.abs(x.at(m.value) - x.at(0))} height={16} />
        <Whisker from={[end(x, m.low, left), y]} to={[end(x, m.high, right), y]} shown={m.low !== null || m.high !== null} />
        <text class="number" x={Math.max(x.at(m.value), end(x, m.high, right)) + 8} y={y + 4}>{compact.format(m.value)}</text>
      </g>
    })}
  </Plot>
}

function Points({ marks, column, width, axis, kind }: { marks: Mark[]; column: Column; width: number; axis: Axis; kind: Kind }) {
  const placed = marks.map(m => ({ ...m, x: axis.at(m.key[0]) })).filter(m => Number.isFinite(m.x)).sort((a, b) => a.x - b.x)
  if (placed.length === 0) return null
  const height = 300
  const [left, right, bottom] = [56, width - 16, height - 28]
  const y = scale(placed, bottom, 10, true, 5)
  const x = scale(placed.map(m => ({ ...m, value: m.x, low: null, high: null })), left + 10, right - 10, false, Math.max(2, Math.floor(width / 120)))
  const tick = (t: number) => axis.time ? new Date(t).toISOString().slice(0, 10) : Math.abs(t) < 1e6 ? figure(t) : compact.format(t)
  const path = placed.map((m, i) => `${i ? 'L' : 'M'}${x.at(m.x).toFixed(1)} ${y.at(m.value).toFixed(1)}`).join('')
  return <Plot width={width} height={height} name={`Points: ${isolated(column.name)} at ${placed.length} places. The table below has the numbers.`}>
    {y.ticks.map(t => <g key={t} class="axis">
      <line x1={left} x2={right} y1={y.at(t)} y2={y.at(t)} />
      <text x={left - 8} y={y.at(t) + 4} text-anchor="end">{compact.format(t)}</text>
    </g>)}
    {x.ticks.map(t => <g key={t} class="axis">
      <text x={x.at(t)} y={height - 6} text-anchor="middle">{tick(t)}</text>
    </g>)}
    {kind === 'line' && <path class="line" d={path} />}
    {placed.map((m, i) => <g key={i}>
      <title>{`${isolated(label(m.key[0]))}: ${figure(m.value, column.digits)}`}</title>
      <Whisker from={[x.at(m.x), end(y, m.low, bottom)]} to={[x.at(m.x), end(y, m.high, 10)]} shown={m.low !== null || m.high !== null} />
      <circle class="point" cx={x.at(m.x)} cy={y.at(m.value)} r={3.5} />
    </g>)}
  </Plot>
}

// end is where an end of an interval stands; an open one reaches to the edge.
const end = (s: { at: (v: number) => number }, v: number | null, edge: number) => v === null ? edge : s.at(v)

// Whisker is an interval: a line with a bar at each end.
function Whisker({ from: [x1, y1], to: [x2, y2], shown }: { from: [number, number]; to: [number, number]; shown: boolean }) {
  if (!shown) return null
  const [dx, dy] = y1 === y2 ? [0, 4] : [4, 0]
  return <path class="whisker" d={`M${x1} ${y1}L${x2} ${y2}M${x1 - dx} ${y1 - dy}L${x1 + dx} ${y1 + dy}M${x2 - dx} ${y2 - dy}L${x2 + dx} ${y2 + dy}`} />
}
