// Logging in at an identity provider: OpenID Connect's code flow with PKCE. What belongs to a log-in that is under way is kept for this
// tab alone, and once; the answer comes back behind the # of the page's own address, which no server is sent and no log has.

import { logInAtProvider, Problem, type LoginProvider } from './api'

interface Begun { state: string; nonce: string; verifier: string; issuer: string; back: string }

const name = 'noisegate-login'

// begin sends the tab to the provider. What it comes back with is good in this tab only.
export async function begin(at: LoginProvider) {
  if (!crypto.subtle) throw new Problem('', 'This page came over an open connection, on which nobody can log in safely.', 'Open it by https.')
  const begun: Begun = { state: random(), nonce: random(), verifier: random(), issuer: at.issuer, back: location.hash }
  const address = new URL(at.authorization_endpoint)
  for (const [name, value] of Object.entries({
    response_type: 'code', response_mode: 'fragment', client_id: at.client_id, redirect_uri: here(), scope: at.scope, state: begun.state,
    nonce: begun.nonce, code_challenge_method: 'S256',
    code_challenge: base64url(await crypto.subtle.digest('SHA-256', new TextEncoder().encode(begun.verifier))),
  })) address.searchParams.set(name, value)
  sessionStorage.setItem(name, JSON.stringify(begun))
  location.assign(address)
}

// finish exchanges what the provider answered for a token, and goes back to the page on which the log-in was begun. The answer was taken
// out of the address before. One that was not asked for here changes nothing.
export async function finish(answer: URLSearchParams): Promise<string> {
  const begun: Begun | null = JSON.parse(sessionStorage.getItem(name) ?? 'null')
  if (!begun || answer.getAll('state').length !== 1 || answer.get('state') !== begun.state) {
    throw new Problem('', 'This log-in was not begun in this tab, and was left aside.', 'Log in here.')
  }
  sessionStorage.removeItem(name) // it holds once
  if (answer.get('iss') !== null && answer.get('iss') !== begun.issuer) {
    throw new Problem('', 'Another identity provider answered than was asked.', 'Log in again, and tell whoever runs the gateway.')
  }
  const code = answer.get('code')
  if (!code || answer.has('error')) {
    throw new Problem('', `The identity provider did not log you in: ${answer.get('error_description') ?? answer.get('error') ?? 'it sent no code'}.`, 'Log in again.')
  }
  const token = await logInAtProvider({ code, code_verifier: begun.verifier, nonce: begun.nonce, redirect_uri: here() })
  if (begun.back) history.replaceState(null, '', begun.back)
  return token
}

// here is where the provider sends people back to, exactly as it is registered there.
const here = () => location.origin + '/'

const random = () => base64url(crypto.getRandomValues(new Uint8Array(32)).buffer)

const base64url = (bytes: ArrayBuffer) => btoa(String.fromCharCode(...new Uint8Array(bytes))).replaceAll('+', '-').replaceAll('/', '_').replace(/=+$/, '')
