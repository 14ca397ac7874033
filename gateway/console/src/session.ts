// Whose console this is. The token is kept for this tab alone, until it is closed, and stands in no address.

import { login } from './api'

const name = 'noisegate-token'

export const savedToken = () => sessionStorage.getItem(name)
export const saveToken = (token: string) => sessionStorage.setItem(name, token)
export const forgetToken = () => sessionStorage.removeItem(name)

// tokenOfAddress exchanges the one-time code of the address that noisegate demo prints, and takes it out of the address and the history
// first. It gives null where the address has none.
export async function tokenOfAddress(): Promise<string | null> {
  const code = /^#code=(.*)$/.exec(location.hash)?.[1]
  if (code === undefined) return null
  history.replaceState(null, '', location.pathname)
  return login(code)
}
