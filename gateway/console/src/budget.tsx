// What the caller has left, in each dataset.

import { useEffect, useState } from 'preact/hooks'
import type { Budget, Limit, Problem } from './api'
import type { PageProps } from './app'
import { amount, price, time } from './format'
import { ProblemBox } from './problem'

export function BudgetPage({ gateway, shown }: PageProps) {
  const [budgets, setBudgets] = useState<Budget[] | null>(null)
  const [problem, setProblem] = useState<Problem | null>(null)
  const load = () => { setProblem(null); gateway.budget().then(r => setBudgets(r.budgets), setProblem) }
  useEffect(() => { if (shown) load() }, [gateway, shown])
  return <>
    <h1>Budget</h1>
    {problem && <ProblemBox problem={problem}><button onClick={load}>Try again</button></ProblemBox>}
    {budgets?.length === 0 && <p>You have no account in any dataset. Ask a steward for one.</p>}
    <div class="budgets">{budgets?.map(b => <Account key={b.dataset + b.account} budget={b} />)}</div>
  </>
}

function Account({ budget: b }: { budget: Budget }) {
  return <section class="card" aria-label={`Budget of ${b.dataset}`}>
    <h2><bdi>{b.dataset}</bdi> <span class="muted"><bdi>{b.account}</bdi></span></h2>
    <Gauge percent={Number(b.usage.percent)} rule={b.usage.rule} />
    <p class="price">{price(b.remaining)} <span class="muted">left of {limitText(b.limit)}</span></p>
    <p>{b.frozen ? 'A steward froze this account: answers that you have stay free.' : sentence(b.advice)}</p>
    <dl class="facts">
      <dt>Spent</dt><dd>{price(b.spent)}</dd>
      {Number(b.reserved.epsilon ?? b.reserved.rho) > 0 && <><dt>In running questions</dt><dd>{price(b.reserved)}</dd></>}
      {b.limit.max_epsilon_per_query && <><dt>One question may cost</dt><dd>ε {amount(b.limit.max_epsilon_per_query)}</dd></>}
      {b.limit.tranche && <><dt>Released</dt><dd>in parts, every {b.limit.tranche.every}{b.next_tranche && `; the next ${time(b.next_tranche)}`}</dd></>}
      {b.limit.rate && <><dt>Pace</dt><dd>ε {amount(b.limit.rate.epsilon)} in {b.limit.rate.per}</dd></>}
      {b.shared.map(s => <><dt key={s.account}>Also charged</dt><dd><bdi>{s.account}</bdi>
        {s.max_epsilon_per_query && `, ε ${amount(s.max_epsilon_per_query)} a question`}{s.replay_only && ', answers that exist only'}</dd></>)}
    </dl>
  </section>
}

export function Gauge({ percent, rule }: { percent: number; rule: string }) {
  const used = Math.min(Math.max(percent, 0), 100)
  const sign = ({ epsilon: 'ε', rho: 'ρ', delta: 'δ' } as Record<string, string>)[rule] ?? rule
  const level = used >= 90 ? 'high' : used >= 70 ? 'middle' : 'low'
  return <div class="gauge">
    <div class={`bar ${level}`} role="meter" aria-label={`Used, by ${sign}`} aria-valuemin={0} aria-valuemax={100} aria-valuenow={used}>
      <span style={{ width: `${used}%` }} />
    </div>
    <span class="muted">{percent} % used, by {sign}</span>
  </div>
}

// limitText is a limit in words: what may be lost in all.
export function limitText(l: Limit): string {
  return price({ epsilon: l.epsilon ?? null, rho: l.rho ?? null, delta: l.delta ?? null })
}

const sentence = (text: string) => text.charAt(0).toUpperCase() + text.slice(1) + '.'
