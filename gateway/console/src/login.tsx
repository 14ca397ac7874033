// Logging in by pasting a token.

import { useState } from 'preact/hooks'
import type { Problem } from './api'
import { ProblemBox } from './problem'

export function Login({ problem, onToken }: { problem: Problem | null; onToken: (token: string) => void }) {
  const [token, setToken] = useState('')
  const submit = (e: Event) => {
    e.preventDefault()
    if (token.trim()) onToken(token.trim())
  }
  return <main class="narrow login">
    <h1>Noisegate</h1>
    <p>Ask about people, with noise, at a price that you see before.</p>
    {problem && <ProblemBox problem={problem} />}
    <form onSubmit={submit}>
      <label for="token">Your token</label>
      <input id="token" type="password" autocomplete="off" spellcheck={false} value={token} autofocus
        onInput={e => setToken(e.currentTarget.value)} />
      <button class="primary" disabled={!token.trim()}>Log in</button>
    </form>
    <p class="aside">Your identity provider issues it; <code>noisegate demo</code> names files that hold some.
      It is kept for this tab only. <a href="/docs">Documentation</a></p>
  </main>
}
