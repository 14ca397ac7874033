// What makes sure that nothing is paid whose price was not seen: pages that spend do it through these two hooks alone.

import { useEffect, useRef, useState } from 'preact/hooks'
import { isAborted, Problem, type Amounts, type Payment, type Price } from './api'

// Known is what the gateway said of exactly the request that stands there now.
export interface Known<E> { estimate?: E; problem?: Problem }

const pause = 400 // of the typing, in milliseconds, before the gateway is asked

// useEstimate gives what is known of a request; null until the gateway has said it. A call for another request is stopped.
export function useEstimate<Q, E>(ask: (q: Q, signal: AbortSignal) => Promise<E>, request: Q | null): { known: Known<E> | null; again: () => void } {
  const [said, setSaid] = useState<Known<E> & { of: string } | null>(null)
  const [times, setTimes] = useState(0)
  const of = request && JSON.stringify([request, times])
  useEffect(() => {
    if (!request || !of) return
    const stop = new AbortController()
    const timer = setTimeout(() => ask(request, stop.signal).then(
      estimate => setSaid({ of, estimate }),
      e => { if (!isAborted(e)) setSaid({ of, problem: e as Problem }) },
    ), pause)
    return () => { clearTimeout(timer); stop.abort() }
  }, [of])
  const again = () => setTimes(n => n + 1)
  useEffect(() => { // what was known before the page was hidden may be old
    const seen = () => { if (document.visibilityState === 'visible') again() }
    document.addEventListener('visibilitychange', seen)
    return () => document.removeEventListener('visibilitychange', seen)
  }, [])
  return { known: said && said.of === of ? said : null, again }
}

// usePayment asks for an answer, once at a time, under a key of the request that stays until there is an answer, or a refusal that charged
// nothing: whoever clicks twice, or again after the connection broke, pays once. It gives null where something is running already.
// Nothing is paid above the price that was shown, whatever it is by now.
export function usePayment<Q, A>(ask: (q: Q, payment: Payment) => Promise<A>): (q: Q, shown: Amounts) => Promise<A | null> {
  const open = useRef(new Map<string, string>()) // keys by request
  const busy = useRef(false)
  return async (q, shown) => {
    if (busy.current) return null
    busy.current = true
    const of = JSON.stringify(q)
    const key = open.current.get(of) ?? randomKey()
    open.current.set(of, key)
    try {
      const answer = await ask(q, { key, atMost: atMost(shown) })
      open.current.delete(of)
      return answer
    } catch (e) {
      if (e instanceof Problem && !mayBeCharged(e.code)) open.current.delete(of)
      throw e
    } finally {
      busy.current = false
    }
  }
}

// free is the price of what is given again, or reads no private row.
export const free: Amounts = { epsilon: '0', rho: '0', delta: '0' }

// atMost is a price as it stands on the button: ε where there is one, else ρ, and δ.
function atMost(shown: Amounts): Price {
  const main: Price = shown.epsilon !== null ? { epsilon: shown.epsilon } : { rho: shown.rho ?? '0' }
  return shown.delta !== null ? { ...main, delta: shown.delta } : main
}

// isDearer tells the refusal of a price that rose since it was shown: nothing was spent.
export const isDearer = (e: unknown) => e instanceof Problem && e.code === 'budget/over-at-most'

export const dearer = 'The price has changed, and nothing was spent: look at it again.'

// mayBeCharged reports whether a request that ended so may have been charged, or still may be (docs/errors.md): no code is no answer at all.
function mayBeCharged(code: string): boolean {
  return code === '' || code === 'request/in-flight' || /^(data|internal)(\/|$)/.test(code)
}

function randomKey(): string {
  return [...crypto.getRandomValues(new Uint8Array(16))].map(b => b.toString(16).padStart(2, '0')).join('')
}
