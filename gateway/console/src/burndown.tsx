// How an account was spent, and until when it lasts at the pace of the last week: what noisegate budget forecast says, as a line.

import { useEffect, useState } from 'preact/hooks'
import type { Account, Amounts, Gateway, JournalEntry, Problem } from './api'
import { useWidth } from './chart'
import { price } from './format'
import { ProblemBox } from './problem'

const mostPages = 40 // of the journal, that are read for the figure
const day = 86_400_000
const paceDays = 7

export function BurnDown({ gateway, dataset, accounts }: { gateway: Gateway; dataset: string; accounts: Account[] }) {
  const [name, setName] = useState(accounts.find(a => a.account === 'dataset')?.account ?? accounts[0]?.account ?? '')
  const [entries, setEntries] = useState<JournalEntry[] | null>(null)
  const [whole, setWhole] = useState(true)
  const [problem, setProblem] = useState<Problem | null>(null)
  useEffect(() => {
    const read = async () => {
      const all: JournalEntry[] = []
      let next: string | undefined = ''
      for (let i = 0; i < mostPages && next !== undefined; i++) {
        const page = await gateway.journal(dataset, next, false)
        all.push(...page.entries)
        next = page.next_cursor
      }
      setEntries(all.reverse())
      setWhole(next === undefined)
    }
    read().catch(setProblem)
  }, [])
  const account = accounts.find(a => a.account === name)
  if (problem) return <ProblemBox problem={problem} />
  if (!account || !entries) return null
  const inRho = account.limit.form === 'zcdp' || account.spent.epsilon === null
  const of = (a: Amounts) => Number((inRho ? a.rho : a.epsilon) ?? 0)
  const cap = Number((inRho ? account.limit.rho : account.limit.epsilon) ?? 0)
  const used = of(account.spent) + of(account.reserved)
  const steps = movements(entries, name, of)
  const now = Date.now()
  const moved = steps.filter(s => s.at > now - paceDays * day).reduce((sum, s) => sum + s.moved, 0)
  const pace = moved / paceDays
  const lasts = pace > 0 && cap > used ? new Date(now + (cap - used) / pace * day) : null
  return <section class="card wide" aria-label="Burn-down">
    <h2>How fast it is spent</h2>
    <div class="row"><label>Account <select value={name} onChange={e => setName(e.currentTarget.value)}>
      {accounts.map(a => <option key={a.account} value={a.account}>{a.account}</option>)}
    </select></label></div>
    {cap > 0 && whole && steps.length > 0 && <Lines steps={steps} used={used} cap={cap} now={now} lasts={lasts} sign={inRho ? 'ρ' : 'ε'} />}
    {!whole && <p class="muted">The journal is longer than what a page reads: <code>noisegate budget forecast</code> reads all of it.</p>}
    <p role="status">{price(account.spent)} spent; {inRho ? 'ρ' : 'ε'} {Number(pace.toPrecision(3))} a day in the last {paceDays} days.{' '}
      {used >= cap && cap > 0 ? 'The cap is used up.' : lasts ? lasts.getTime() - now > 36525 * day ? 'At this pace it lasts for more than a century.'
        : `At this pace it lasts until ${lasts.toLocaleDateString('en-GB', { dateStyle: 'medium' })}.` : 'Nothing was spent of late.'}</p>
  </section>
}

interface Step { at: number; moved: number; used: number }

// movements are the charges of an account, as the journal has them: what a charge counts as changes when it is settled.
function movements(entries: JournalEntry[], name: string, of: (a: Amounts) => number): Step[] {
  const first = entries.find(e => e.account_name === name && e.account_ids.length === 1)
  if (!first) return []
  const [number] = first.account_ids
  const counts = new Map<string, number>()
  const steps: Step[] = []
  let used = 0
  for (const e of entries) {
    if (!e.release_id || !e.account_ids.includes(number)) continue
    const shared = name === 'dataset' || name.startsWith('ensemble:')
    const counted = of(shared && e.shared ? e.shared : e.amounts)
    const moved = counted - (counts.get(e.release_id) ?? 0)
    counts.set(e.release_id, counted)
    if (moved === 0) continue
    used += moved
    steps.push({ at: Date.parse(e.at), moved, used })
  }
  return steps
}

// Lines draw what is left: a step down at each charge, and the forecast as a dashed line.
function Lines({ steps, used, cap, now, lasts, sign }: { steps: Step[]; used: number; cap: number; now: number; lasts: Date | null; sign: string }) {
  const [box, width] = useWidth()
  const height = 220
  const [left, right, top, bottom] = [56, width - 16, 12, 192]
  const begin = Math.min(steps[0].at, now - day)
  const end = Math.min(lasts?.getTime() ?? now, now + 2 * (now - begin)) // as far ahead as twice what lies behind
  const x = (t: number) => left + (t - begin) / Math.max(end - begin, 1) * (right - left)
  const y = (v: number) => bottom - Math.min(Math.max(v / cap, 0), 1) * (bottom - top)
  const path = steps.map(s => `H${x(s.at).toFixed(1)}V${y(cap - s.used).toFixed(1)}`).join('')
  const ahead = lasts ? cap - used - (cap - used) * (end - now) / (lasts.getTime() - now) : cap - used
  const date = (t: number) => new Date(t).toLocaleDateString('en-GB', { dateStyle: 'medium' })
  return <figure ref={box}>
    {width > 0 && <svg width={width} height={height} role="img" aria-label={`What is left of ${sign} ${cap}, from ${date(begin)} to ${date(end)}. The text below says it.`}>
      {[0, 0.5, 1].map(part => <g key={part} class="axis">
        <line x1={left} x2={right} y1={y(cap * part)} y2={y(cap * part)} />
        <text x={left - 8} y={y(cap * part) + 4} text-anchor="end">{sign} {Number((cap * part).toPrecision(3))}</text>
      </g>)}
      <text x={left} y={height - 6}>{date(begin)}</text>
      <text x={right} y={height - 6} text-anchor="end">{date(end)}</text>
      <path class="line" d={`M${left} ${y(cap)}${path}H${x(now).toFixed(1)}`} />
      {lasts && <path class="line forecast" d={`M${x(now).toFixed(1)} ${y(cap - used).toFixed(1)}L${x(end).toFixed(1)} ${y(ahead).toFixed(1)}`} />}
    </svg>}
    <figcaption>What is left of the cap; the dashed line goes on at the pace of the last {paceDays} days</figcaption>
  </figure>
}
