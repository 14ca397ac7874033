// A real identity provider: oidc-provider, which is certified for OpenID Connect, with people who are whom they say.

import { generateKeyPairSync } from 'node:crypto'
import { createServer, type RequestListener } from 'node:http'
import type { AddressInfo } from 'node:net'
import Provider from 'oidc-provider'

export interface People {
  issuer: string
  keys: string // their address
  serve: (redirect: string) => void // until then nobody answers
  settings: { audience: string; codeLife: number; tokenLife: number; away: boolean }
  stop: () => Promise<void>
}

// startProvider listens, and is an identity provider once it is told where its client is. Who logs in has the roles of their name:
// "ana+analyst".
export async function startProvider(): Promise<People> {
  let handle: RequestListener | null = null
  const settings = { audience: 'noisegate', codeLife: 60, tokenLife: 3600, away: false }
  const server = createServer((request, response) => handle && !settings.away ? handle(request, response) : response.writeHead(503).end())
  await new Promise<void>(resolve => server.listen(0, '127.0.0.1', resolve))
  const issuer = `http://127.0.0.1:${(server.address() as AddressInfo).port}`
  const { privateKey } = generateKeyPairSync('rsa', { modulusLength: 2048 })
  return {
    issuer, keys: issuer + '/jwks', settings,
    serve(redirect) {
      handle = new Provider(issuer, {
        clients: [{ client_id: 'console', token_endpoint_auth_method: 'none', redirect_uris: [redirect], response_types: ['code'], grant_types: ['authorization_code'] }],
        jwks: { keys: [{ ...privateKey.export({ format: 'jwk' }), kid: 'k', use: 'sig', alg: 'RS256' }] },
        cookies: { keys: ['for tests'] },
        pkce: { required: () => true },
        findAccount: (_, id) => ({ accountId: id, claims: async () => ({ sub: id }) }),
        extraTokenClaims: (_, token) => ({ roles: ((token as { accountId?: string }).accountId ?? '').split('+').slice(1) }),
        ttl: { AuthorizationCode: () => settings.codeLife, AccessToken: () => settings.tokenLife },
        features: {
          devInteractions: { enabled: true },
          resourceIndicators: {
            enabled: true, defaultResource: () => 'urn:noisegate', useGrantedResource: () => true,
            getResourceServerInfo: () => ({ scope: '', audience: settings.audience, accessTokenFormat: 'jwt', jwt: { sign: { alg: 'RS256' } } }),
          },
        },
      }).callback()
    },
    stop: () => new Promise(resolve => { server.close(() => resolve()); server.closeAllConnections() }),
  }
}
