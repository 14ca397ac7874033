// What makes sure that nothing is paid whose price was not seen: pages that spend do it through these two hooks alone.

import { useEffect, useRef, useState } from 'preact/hooks'
import { isAborted, Problem } from './api'

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
  return { known: said && said.of === of ? said : null, again: () => setTimes(n => n + 1) }
}

// usePayment asks for an answer, once at a time, under a key of the request that stays until there is an answer, or a refusal that charged
// nothing: whoever clicks twice, or again after the connection broke, pays once. It gives null where something is running already.
export function usePayment<Q, A>(ask: (q: Q, key: string) => Promise<A>): (q: Q) => Promise<A | null> {
  const open = useRef(new Map<string, string>()) // keys by request
  const busy = useRef(false)
  return async q => {
    if (busy.current) return null
    busy.current = true
    const of = JSON.stringify(q)
    const key = open.current.get(of) ?? randomKey()
    open.current.set(of, key)
    try {
      const answer = await ask(q, key)
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

// mayBeCharged reports whether a request that ended so may have been charged, or still may be (docs/errors.md): no code is no answer at all.
function mayBeCharged(code: string): boolean {
  return code === '' || code === 'request/in-flight' || /^(data|internal)(\/|$)/.test(code)
}

function randomKey(): string {
  return [...crypto.getRandomValues(new Uint8Array(16))].map(b => b.toString(16).padStart(2, '0')).join('')
}
