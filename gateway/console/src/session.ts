// Whose console this is. The token is kept for this tab alone, until it is closed, and stands in no address.

import { login } from './api'
import { finish } from './provider'

const name = 'noisegate-token'

export const savedToken = () => sessionStorage.getItem(name)
export const saveToken = (token: string) => sessionStorage.setItem(name, token)
export const forgetToken = () => sessionStorage.removeItem(name)

// hasAnswer tells addresses with a code: that of noisegate demo, or an identity provider's answer, which names the state of the log-in.
export const hasAnswer = () => /^#(code=|.*\bstate=)/.test(location.hash)

// tokenOfAddress exchanges the code of the address for a token, and takes it out of the address and the history first. It gives null where
// the address has none.
export async function tokenOfAddress(): Promise<string | null> {
  if (!hasAnswer()) return null
  const answer = new URLSearchParams(location.hash.slice(1))
  history.replaceState(null, '', location.pathname)
  return answer.has('state') ? finish(answer) : login(answer.get('code') ?? '')
}

// endOf is when a token ends, in milliseconds; null where it does not say. The gateway alone decides whether it is good.
export function endOf(token: string): number | null {
  try {
    const { exp } = JSON.parse(atob(token.split('.')[1].replaceAll('-', '+').replaceAll('_', '/')))
    return typeof exp === 'number' ? exp * 1000 : null
  } catch {
    return null
  }
}
