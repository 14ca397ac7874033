// ε against numbers of labels, by each accountant that looks at no vote: what was bought, and what more would cost.

import type { EpsilonCurve } from './api'
import { useWidth } from './chart'
import { amount } from './format'

// The accountants as people call them: docs/pate.md says what they are. The last one is what the budget counts.
const names: Record<string, string> = {
  pure_composition: 'ε added up', strong_composition: 'strong composition', moments_independent: 'moments accountant',
  rdp_independent: 'Rényi, as of 2017', rdp_independent_tight: 'Rényi, tight: what is charged',
}
const titleOf = (method: string) => names[method] ?? method.replaceAll('_', ' ')
const short = (n: number) => isFinite(n) ? String(Number(n.toPrecision(3))) : '∞'

export function Curve({ curve: { points, lines }, delta, had, want }: { curve: EpsilonCurve; delta: string; had: number; want: number }) {
  const [box, width] = useWidth()
  const drawn = lines.map(l => ({ title: titleOf(l.method), epsilon: l.epsilon.map(Number) })) // Infinity comes as text
  const top = Math.max(...drawn.flatMap(l => l.epsilon.filter(isFinite)), 0)
  const [left, right, up, down] = [48, width - 12, 10, 190]
  const most = points[points.length - 1] ?? 1
  const x = (n: number) => left + n / most * (right - left)
  const y = (epsilon: number) => down - Math.min(epsilon / (top || 1), 1) * (down - up)
  const path = (l: { epsilon: number[] }) => 'M' + points.flatMap((n, i) => isFinite(l.epsilon[i]) ? [`${x(n).toFixed(1)} ${y(l.epsilon[i]).toFixed(1)}`] : []).join('L')
  const at = [had, had + want].filter((n, i, all) => n > 0 && all.indexOf(n) === i)
  const rows = [...new Set(points.filter((_, i) => (i + 1) % Math.ceil(points.length / 10) === 0 || i === points.length - 1))]
  return <>
    <h3>ε after so many labels</h3>
    <figure ref={box}>
      {width > 0 && top > 0 && <svg width={width} height={232} role="img" aria-label={`ε by number of labels up to ${most}, by ${drawn.length} accountants. The table below has the numbers.`}>
        {[0, 0.5, 1].map(part => <g key={part} class="axis">
          <line x1={left} x2={right} y1={y(top * part)} y2={y(top * part)} />
          <text x={left - 6} y={y(top * part) + 4} text-anchor="end">{short(top * part)}</text>
        </g>)}
        {at.map(n => <line key={n} class="now" x1={x(n)} x2={x(n)} y1={up} y2={down} />)}
        {drawn.map((l, i) => <path key={l.title} class={`line dash${i}`} d={path(l)} />)}
        <text x={left} y={208}>0</text>
        <text x={right} y={208} text-anchor="end">{most.toLocaleString('en')} labels</text>
        {at.map(n => <text key={n} x={Math.min(Math.max(x(n), left + 40), right - 70)} y={224} text-anchor="middle">{n === had ? 'bought' : 'with these'}</text>)}
      </svg>}
      <figcaption>If all are bought at these parameters and answered, at δ {amount(delta)}{had > 0 && `; you have bought ${had.toLocaleString('en')}`}</figcaption>
    </figure>
    <div class="scroll wrapped" tabIndex={0} role="region" aria-label="Table of ε"><table>
      <thead><tr><th scope="col" class="number">labels</th>{drawn.map((l, i) => <th key={l.title} scope="col" class="number">
        <svg class="key" width="28" height="6" aria-hidden="true"><path class={`line dash${i}`} d="M0 3H28" /></svg><br />{l.title}</th>)}</tr></thead>
      <tbody>{rows.map(n => <tr key={n}><td class="number">{n.toLocaleString('en')}</td>
        {drawn.map(l => <td key={l.title} class="number">{short(l.epsilon[points.indexOf(n)])}</td>)}</tr>)}</tbody>
    </table></div>
  </>
}
