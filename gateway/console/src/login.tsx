// Logging in: at the identity provider, where the gateway has one, or by pasting a token.

import { useEffect, useState } from 'preact/hooks'
import { loginOffer, type LoginOffer, type LoginProvider, type Problem } from './api'
import { time } from './format'
import { ProblemBox } from './problem'
import { begin } from './provider'
import { endOf } from './session'

// useOffer asks how one may log in. Where that cannot be said, a token can be pasted all the same.
function useOffer(): { offer: LoginOffer | null; problem: Problem | null; again: () => void } {
  const [offer, setOffer] = useState<LoginOffer | null>(null)
  const [problem, setProblem] = useState<Problem | null>(null)
  const again = () => {
    setProblem(null)
    loginOffer().then(setOffer, e => { setProblem(e); setOffer({}) })
  }
  useEffect(again, [])
  return { offer, problem, again }
}

export function Login({ problem, left, onToken }: { problem: Problem | null; left: boolean; onToken: (token: string) => void }) {
  const { offer, problem: noOffer, again } = useOffer()
  const provider = offer?.provider
  return <main class="narrow login">
    <h1>Noisegate</h1>
    <p>Ask about people, with noise, at a price that you see before.</p>
    {problem && <ProblemBox problem={problem} />}
    {noOffer && <ProblemBox problem={noOffer}><button onClick={again}>Try again</button></ProblemBox>}
    {provider && <>
      <Begin provider={provider} />
      {left && provider.end_session_endpoint && <p class="aside">You are logged out here. At <bdi>{hostOf(provider)}</bdi> you may still be
        logged in: <a href={endSession(provider)}>log out there</a>.</p>}
      <details><summary>Paste a token</summary><TokenForm onToken={onToken} /></details>
    </>}
    {offer && !provider && <TokenForm onToken={onToken} />}
    <p class="aside">{provider ? 'A token' : <>Your identity provider issues it; <code>noisegate demo</code> names files that hold some. It</>}
      {' '}is kept for this tab only. <a href="/docs">Documentation</a></p>
  </main>
}

// Begin goes to the identity provider, which comes back to this page.
function Begin({ provider, again }: { provider: LoginProvider; again?: boolean }) {
  const [problem, setProblem] = useState<Problem | null>(null)
  return <>
    {problem && <ProblemBox problem={problem} />}
    <p><button class="primary" autofocus onClick={() => { setProblem(null); begin(provider).catch(setProblem) }}>
      Log in {again && 'again '}at <bdi>{hostOf(provider)}</bdi></button></p>
  </>
}

const hostOf = (provider: LoginProvider) => new URL(provider.issuer).host

function endSession(provider: LoginProvider): string {
  const address = new URL(provider.end_session_endpoint!)
  address.searchParams.set('client_id', provider.client_id)
  return address.href
}

function TokenForm({ onToken }: { onToken: (token: string) => void }) {
  const [token, setToken] = useState('')
  const submit = (e: Event) => {
    e.preventDefault()
    if (token.trim()) onToken(token.trim())
  }
  return <form onSubmit={submit}>
    <label for="token">Your token</label>
    <input id="token" type="password" autocomplete="off" spellcheck={false} value={token} autofocus
      onInput={e => setToken(e.currentTarget.value)} />
    <button class="primary" disabled={!token.trim()}>Log in</button>
  </form>
}

const warning = 5 * 60_000 // before a token ends, in milliseconds
const longest = 2 ** 31 - 1 // that a timer waits

// Ending says that the token ends soon, and has another one fetched where that is a click.
export function Ending({ token }: { token: string }) {
  const end = endOf(token)
  const [soon, setSoon] = useState(false)
  useEffect(() => {
    if (end === null) return
    const timer = setTimeout(() => setSoon(true), Math.min(Math.max(end - Date.now() - warning, 0), longest))
    return () => clearTimeout(timer)
  }, [token])
  return soon && end !== null ? <Renew end={end} /> : null
}

function Renew({ end }: { end: number }) {
  const { offer } = useOffer()
  return <section class="ending" aria-label="End of the log-in">
    <p role="status">You are logged in until {time(new Date(end).toISOString())}. Texts that you typed stay in this browser.</p>
    {offer?.provider && <Begin provider={offer.provider} again />}
  </section>
}
