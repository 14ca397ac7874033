// The frame around the pages: who is logged in, and which page is shown. A page is a line in `pages`.

import type { ComponentType } from 'preact'
import { useEffect, useMemo, useState } from 'preact/hooks'
import { Gateway, Problem, type Principal } from './api'
import { Ask } from './ask'
import { BudgetPage } from './budget'
import { Labels } from './labels'
import { Ending, Login } from './login'
import { ProblemBox } from './problem'
import { forgetToken, hasAnswer, savedToken, saveToken, tokenOfAddress } from './session'
import { Steward } from './steward'

// What a page is given. Pages stay where they are while another is shown, so that what was typed is not lost.
export interface PageProps { gateway: Gateway; who: string; roles: string[]; shown: boolean }

const pages: { name: string; title: string; roles: string[]; page: ComponentType<PageProps> }[] = [
  { name: 'ask', title: 'Ask', roles: ['analyst'], page: Ask },
  { name: 'budget', title: 'Budget', roles: ['analyst', 'ml'], page: BudgetPage },
  { name: 'labels', title: 'Labels', roles: ['ml'], page: Labels },
  { name: 'steward', title: 'Steward', roles: ['steward'], page: Steward },
]

// useHash is the name of the page in the address.
function useHash(): string {
  const [hash, setHash] = useState(location.hash)
  useEffect(() => {
    const changed = () => setHash(location.hash)
    addEventListener('hashchange', changed)
    return () => removeEventListener('hashchange', changed)
  }, [])
  return hash.replace(/^#\/?/, '')
}

export function App() {
  const [token, setToken] = useState(savedToken())
  const [problem, setProblem] = useState<Problem | null>(null)
  const [coming, setComing] = useState(hasAnswer())
  const [left, setLeft] = useState(false)
  useEffect(() => {
    const enter = () => tokenOfAddress()
      .then(token => { if (token) logIn(token) }, setProblem) // a wrong code ends no session
      .finally(() => setComing(false))
    enter()
    addEventListener('hashchange', enter)
    return () => removeEventListener('hashchange', enter)
  }, [])
  const logIn = (token: string) => {
    if (!/^[\x21-\x7e]+$/.test(token)) {
      setProblem(new Problem('', 'This is no token.', 'A token has letters, digits and signs of ASCII alone, and no space.'))
      return
    }
    saveToken(token)
    setProblem(null)
    setToken(token)
  }
  const logOut = (why: Problem | null) => { forgetToken(); setProblem(why); setLeft(why === null); setToken(null) }
  if (coming) return <main class="narrow" aria-busy="true" />
  if (!token) return <Login problem={problem} left={left} onToken={logIn} />
  return <>
    {problem && <aside class="narrow"><ProblemBox problem={problem} /></aside>}
    <Home key={token} token={token} logOut={logOut} />
  </>
}

// Home is what somebody sees who is logged in.
function Home({ token, logOut }: { token: string; logOut: (why: Problem | null) => void }) {
  const gateway = useMemo(() => new Gateway(token, logOut), [token])
  const [who, setWho] = useState<Principal | null>(null)
  const [problem, setProblem] = useState<Problem | null>(null)
  const name = useHash()
  const load = () => { setProblem(null); gateway.principal().then(setWho, setProblem) }
  useEffect(load, [gateway])
  const mine = pages.filter(p => p.roles.some(role => who?.roles.includes(role)))
  const shown = mine.find(p => p.name === name) ?? mine[0]
  useEffect(() => { document.title = shown ? `${shown.title} - Noisegate` : 'Noisegate' }, [shown])
  return <>
    <header>
      <span class="brand">Noisegate</span>
      <nav aria-label="Pages">
        {mine.map(p => <a key={p.name} href={`#/${p.name}`} aria-current={p === shown ? 'page' : undefined}>{p.title}</a>)}
        <a href="/docs" target="_blank" rel="noopener">Documentation</a>
      </nav>
      <span class="who">
        {who && <bdi>{who.subject}</bdi>}
        <button class="quiet" onClick={() => logOut(null)}>Log out</button>
      </span>
    </header>
    <Ending token={token} />
    {problem && <main class="narrow"><ProblemBox problem={problem} /><button onClick={load}>Try again</button></main>}
    {who && mine.map(p => <main key={p.name} hidden={p !== shown}><p.page gateway={gateway} who={who.subject} roles={who.roles} shown={p === shown} /></main>)}
    {who && mine.length === 0 && <main class="narrow"><p>Your token has no role that has a page here: <bdi>{who.roles.join(', ') || 'none'}</bdi>.</p></main>}
  </>
}
