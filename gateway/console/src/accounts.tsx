// Accounts of a dataset, and what a steward does to them: limits, refills, freezes. Each is shown as before and after, and confirmed.

import { useState } from 'preact/hooks'
import type { Account, Gateway, Limit, Problem, Refill, Signature } from './api'
import { Gauge, limitText } from './budget'
import { command } from './command'
import { price } from './format'
import { ProblemBox } from './problem'
import { Signing, type Command } from './signing'

type Deed = 'limit' | 'refill' | 'freeze'

export function Accounts({ gateway, dataset, who, accounts, onChange }: {
  gateway: Gateway; dataset: string; who: string; accounts: Account[]; onChange: () => void
}) {
  const [open, setOpen] = useState<{ account: Account; deed: Deed } | null>(null)
  const [opening, setOpening] = useState('')
  const toggle = (account: Account, deed: Deed) => setOpen(open?.account === account && open.deed === deed ? null : { account, deed })
  const done = () => { setOpen(null); setOpening(''); onChange() }
  return <section class="card wide" aria-label="Accounts">
    <h2>Who spent what</h2>
    <div class="scroll" tabIndex={0} role="region" aria-label="Table of accounts"><table>
      <thead><tr><th scope="col">account</th><th scope="col">used</th><th scope="col">spent</th><th scope="col">left</th><th scope="col">limit</th>
        <th scope="col">state</th><th scope="col" class="unprinted">change</th></tr></thead>
      <tbody>{accounts.map(a => <tr key={a.account}>
        <td><bdi>{a.account}</bdi></td><td><Gauge percent={Number(a.usage.percent)} rule={a.usage.rule} /></td>
        <td>{price(a.spent)}</td><td>{price(a.remaining)}</td><td>{limitText(a.limit)}{a.due && <div class="muted">of an older policy: the one in force counts from the next charge on</div>}</td>
        <td>{a.frozen ? 'frozen' : a.limit.replay_only ? 'replays only' : 'open'}{a.refills > 0 && `, refilled ${a.refills} times`}</td>
        <td class="deeds unprinted">
          {(['limit', 'refill', 'freeze'] as Deed[]).map(deed => <button key={deed} aria-expanded={open?.account === a && open.deed === deed}
            aria-label={`${titles(a)[deed]} ${a.account}`} onClick={() => toggle(a, deed)}>{titles(a)[deed]}</button>)}
        </td>
      </tr>)}</tbody>
    </table></div>
    <form class="row more unprinted" onSubmit={e => { e.preventDefault(); setOpen({ account: unopened(dataset, opening.trim()), deed: 'limit' }) }}>
      <label>Another account <input value={opening} placeholder="analyst:ana" spellcheck={false} onInput={e => setOpening(e.currentTarget.value)} /></label>
      <button disabled={!/^(dataset$|(group|analyst|ensemble):.)/.test(opening.trim())}>Set its limit</button>
    </form>
    {open && <Change key={open.account.account + open.deed} gateway={gateway} dataset={dataset} who={who} {...open} onDone={done} />}
  </section>
}

const titles = (a: Account): Record<Deed, string> => ({ limit: 'Limit', refill: 'Refill', freeze: a.frozen ? 'Unfreeze' : 'Freeze' })

// unopened is an account that the ledger does not have yet.
function unopened(dataset: string, account: string): Account {
  const none = { epsilon: null, rho: null, delta: null }
  return { dataset, account, limit: { form: 'approx' }, spent: none, reserved: none, remaining: none, lifetime: { epsilon: null, delta: null },
    usage: { rule: 'epsilon', percent: '0' }, frozen: false, refills: 0, advice: '' }
}

// Change is one deed: what is now, what it will be, and the button that does it.
function Change({ gateway, dataset, who, account, deed, onDone }: {
  gateway: Gateway; dataset: string; who: string; account: Account; deed: Deed; onDone: () => void
}) {
  const [signature, setSignature] = useState<Signature | null>(null)
  const [limit, setLimit] = useState<Limit>(account.limit)
  const [added, setAdded] = useState<Refill>({})
  const [problem, setProblem] = useState<Problem | null>(null)
  const [running, setRunning] = useState(false)
  const name = account.account
  const [before, after] = deed === 'freeze' ? [account.frozen ? 'frozen' : 'open', account.frozen ? 'open' : 'frozen']
    : deed === 'limit' ? [words(account.limit), words(cleaned(limit))] : [words(account.limit), words(refilled(account.limit, added))]
  const act = async () => {
    setRunning(true)
    setProblem(null)
    try {
      if (deed === 'freeze') await gateway.freeze(dataset, name, !account.frozen)
      else if (deed === 'limit') await gateway.setLimit(dataset, name, cleaned(limit), signature)
      else await gateway.refill(dataset, name, cleaned(added), signature)
      onDone()
    } catch (e) {
      setProblem(e as Problem)
      setRunning(false)
    }
  }
  const field = <T extends object>(of: T, set: (t: T) => void, key: keyof T & string, title: string) => <label>{title}{' '}
    <input class="amount" inputMode="decimal" size={8} value={String(of[key] ?? '')} onInput={e => set({ ...of, [key]: e.currentTarget.value.trim() })} /></label>
  const currency = (limit.form === 'zcdp' ? 'rho' : 'epsilon') as 'rho' | 'epsilon'
  return <section class="change unprinted" aria-label="Change">
    <h3>{titles(account)[deed]} <bdi>{name}</bdi></h3>
    {deed === 'limit' && <div class="row">
      <label>Form <select value={limit.form} onChange={e => setLimit({ ...limit, form: e.currentTarget.value, epsilon: undefined, rho: undefined })}>
        <option value="approx">ε and δ</option><option value="pure">pure ε</option><option value="zcdp">ρ</option>
      </select></label>
      {field(limit, setLimit, currency, currency === 'rho' ? 'ρ' : 'ε')}
      {limit.form !== 'pure' && field(limit, setLimit, 'delta', 'δ')}
      {field(limit, setLimit, 'max_epsilon_per_query', 'ε of one question at most')}
      <label><input type="checkbox" checked={!!limit.replay_only} onChange={e => setLimit({ ...limit, replay_only: e.currentTarget.checked })} /> replays only</label>
    </div>}
    {deed === 'refill' && <>
      <div class="row">
        {field(added, setAdded, account.limit.form === 'zcdp' ? 'rho' : 'epsilon', account.limit.form === 'zcdp' ? 'ρ more' : 'ε more')}
        {account.limit.form !== 'pure' && field(added, setAdded, 'delta', 'δ more')}
        <label>Reason <input value={added.reason ?? ''} onInput={e => setAdded({ ...added, reason: e.currentTarget.value })} /></label>
      </div>
      <p class="muted">A refill raises what can be lost about each person for good, also where the data are the same.</p>
    </>}
    <table class="compared"><tbody>
      <tr><th scope="row">now</th><td>{before}</td></tr>
      <tr><th scope="row">then</th><td>{after}</td></tr>
    </tbody></table>
    {problem && <ProblemBox problem={problem} />}
    {deed !== 'freeze' && before !== after && <Signing open={problem?.code === 'budget/signature'} onSigned={setSignature}
      commands={deed === 'limit' ? signLimit(dataset, name, cleaned(limit), who) : signRefill(dataset, name, cleaned(added), who)} />}
    <p class="row"><button class="primary" disabled={running || before === after} onClick={act}>
      {running ? 'Changing …' : `Confirm: ${titles(account)[deed].toLowerCase()}`}</button></p>
  </section>
}

const second = (who: string) => ({ for: who, as: 'NAME', key: 'THEIR.key' })

// signRefill are the commands that sign a refill: one steward's signature where the dataset has keys of stewards, a second steward's where its
// policy wants two for caps.
function signRefill(dataset: string, account: string, r: Refill, who: string): Command[] {
  const words = ['budget', 'refill', dataset, account]
  const flags = { epsilon: r.epsilon, rho: r.rho, delta: r.delta, reason: r.reason }
  return [{ title: 'Where refills are signed', text: command(words, { ...flags, key: 'YOUR.key', print: true }) },
    { title: 'Where two stewards are needed: the other one', text: command(words, { ...flags, ...second(who) }) }]
}

function signLimit(dataset: string, account: string, l: Limit, who: string): Command[] {
  return [{ title: 'Where two stewards are needed: the other one', text: command(['budget', 'set', dataset, account], {
    form: l.form, epsilon: l.epsilon, rho: l.rho, delta: l.delta, 'max-epsilon-per-query': l.max_epsilon_per_query, 'replay-only': !!l.replay_only,
    'tranche-every': l.tranche?.every, 'tranche-epsilon': l.tranche?.epsilon, 'tranche-rho': l.tranche?.rho, 'rate-epsilon': l.rate?.epsilon,
    'rate-per': l.rate?.per, replace: true, new: true, ...second(who),
  }) }]
}

// cleaned leaves out what is empty.
function cleaned<T extends object>(of: T): T {
  return Object.fromEntries(Object.entries(of).filter(([, v]) => v !== '' && v !== undefined && v !== null && v !== false)) as T
}

// words is a limit as people read it, with all that a change could take away.
function words(l: Limit): string {
  const parts = [limitText(l)]
  if (l.max_epsilon_per_query) parts.push(`ε ${l.max_epsilon_per_query} a question`)
  if (l.tranche) parts.push(`${price({ epsilon: l.tranche.epsilon ?? null, rho: l.tranche.rho ?? null, delta: null })} each ${l.tranche.every}`)
  if (l.rate) parts.push(`ε ${l.rate.epsilon} in ${l.rate.per}`)
  if (l.replay_only) parts.push('replays only')
  return `${l.form ?? 'approx'}: ${parts.join('; ')}`
}

// refilled is a limit with what is added, for the eye: the gateway adds exactly.
function refilled(l: Limit, added: Refill): Limit {
  const sum = (a?: string | null, b?: string) => b && Number(b) ? String(Number((Number(a ?? 0) + Number(b)).toPrecision(12))) : a ?? undefined
  return { ...l, epsilon: sum(l.epsilon, added.epsilon), rho: sum(l.rho, added.rho), delta: sum(l.delta, added.delta) }
}
