// A real gateway with its own PostgreSQL, and analysts of it that each have a whole budget.

import { expect, test as base, type Page } from '@playwright/test'
import axe from 'axe-core'
import { spawn } from 'node:child_process'
import { createHmac } from 'node:crypto'
import { chmodSync, mkdtempSync, readFileSync, rmSync } from 'node:fs'
import { createInterface } from 'node:readline'

export const program = process.env.NOISEGATE ?? '../../bin/noisegate'

export interface Demo {
  dir: string // for files of a test
  sockets: string // of its PostgreSQL, where everybody is believed to be who they say
  key: string // the file of the key of its tokens
  http: string
  console: string // the address with a one-time code
  tokens: Record<string, string>
  token: (subject: string, roles?: string[], seconds?: number) => string
  stop: () => Promise<void>
}

// startDemo runs noisegate demo until it says that it is ready. Its key is kept beside its data, so that tests can make tokens.
export async function startDemo(): Promise<Demo> {
  const dir = mkdtempSync('/tmp/noisegate-console-')
  chmodSync(dir, 0o755) // PostgreSQL does not run as root
  const child = spawn(program,
    ['demo', '--json', '--rows=2000', '--http=127.0.0.1:0', '--pg=127.0.0.1:0', `--keep=${dir}/demo`], { stdio: ['ignore', 'pipe', 'inherit'] })
  const ended = new Promise<void>(resolve => child.once('exit', () => resolve()))
  const line = await new Promise<string>((resolve, reject) => {
    createInterface(child.stdout).once('line', resolve)
    child.once('exit', code => reject(new Error(`noisegate demo ended with ${code}`)))
    child.once('error', reject)
  })
  const key = readFileSync(`${dir}/demo/hs256.key`, 'utf8').trim()
  const part = (value: object) => Buffer.from(JSON.stringify(value)).toString('base64url')
  return {
    ...JSON.parse(line), dir, sockets: `${dir}/demo`, key: `${dir}/demo/hs256.key`,
    token(subject, roles = ['analyst'], seconds = 3600) {
      const now = Math.floor(Date.now() / 1000)
      const text = part({ alg: 'HS256', typ: 'JWT' }) + '.' +
        part({ iss: 'noisegate-demo', aud: 'noisegate', sub: subject, roles, iat: now - 7200, nbf: now - 7200, exp: now + seconds })
      return `${text}.${createHmac('sha256', key).update(text).digest('base64url')}`
    },
    async stop() {
      child.kill('SIGTERM')
      await ended
      rmSync(dir, { recursive: true, force: true })
    },
  }
}

// providers are the addresses of identity providers of a test: their pages are not the gateway's.
export const providers: string[] = []

// test has one demo for all tests of a file. A page may ask nobody but the gateway, and nothing that the policy forbids may happen in it.
export const test = base.extend<{ clean: void }, { demo: Demo }>({
  demo: [async ({}, use) => {
    const demo = await startDemo()
    await use(demo)
    await demo.stop()
  }, { scope: 'worker', timeout: 60_000 }],
  clean: [async ({ page }, use) => {
    const wrong: string[] = []
    page.on('pageerror', e => wrong.push(String(e)))
    await page.addInitScript(() => addEventListener('securitypolicyviolation', e => {
      // Chromium gives what replaces a selection the style of what was selected, as an attribute. The policy stops it: the editor has its own.
      const typed = e.effectiveDirective === 'style-src-attr' && (e.target as Element).className === 'editor'
      if (!typed) console.error('policy:', e.effectiveDirective, e.sourceFile, e.lineNumber, (e.target as Element).outerHTML?.slice(0, 300))
    }))
    page.on('console', m => {
      const known = ['Failed to load resource', 'Applying inline style'].some(text => m.text().startsWith(text)) // refusals; see above
      if (m.type() === 'error' && !known) wrong.push(m.text())
    })
    page.on('request', r => {
      if (r.isNavigationRequest() && providers.some(p => r.url().startsWith(p))) return // who logs in leaves for the identity provider
      if (providers.some(p => page.url().startsWith(p))) return // its own page
      if (!r.isNavigationRequest() && new URL(r.url()).origin !== new URL(page.url()).origin) wrong.push(r.url())
      if (r.url().includes('eyJ') || r.url().includes('code')) wrong.push(`a secret in an address: ${r.url()}`)
    })
    await use()
    expect(wrong).toEqual([])
  }, { auto: true }],
})

// logIn opens the console with a token.
export async function logIn(page: Page, demo: Demo, token: string) {
  await page.goto(demo.http)
  await page.getByLabel('Your token').fill(token)
  await page.getByRole('button', { name: 'Log in' }).click()
}

// type puts a question into the editor, as somebody who types it.
export async function type(page: Page, sql: string) {
  const editor = page.getByRole('textbox', { name: 'Question in SQL' })
  await expect(editor).toHaveText(/SELECT/) // the example, which comes with the datasets, or what was typed before
  await expect(async () => { // the editor may not be ready for the key, and selects a moment after it
    await editor.press('Control+A')
    expect(await page.evaluate(() => String(getSelection()))).toContain('SELECT')
  }).toPass({ timeout: 20_000 })
  await page.keyboard.insertText(sql)
  await page.keyboard.press('Escape') // what the editor offers to complete
}

// accessible wants no violation of the rules that a machine can check.
export async function accessible(page: Page) {
  await page.evaluate(axe.source)
  const { violations } = await page.evaluate(() => (window as any).axe.run(document, { resultTypes: ['violations'] }))
  expect(violations.map((v: any) => `${v.id}: ${v.nodes.map((n: any) => n.html).join(' ').slice(0, 300)}`)).toEqual([])
}
