// Logging in at an identity provider: a real one, and a real gateway that takes its tokens.

import { expect, type Page } from '@playwright/test'
import { accessible, providers, test as base } from './demo'
import { startGateway, type Gateway } from './gateway'
import { startProvider, type People } from './provider'

const test = base.extend<{}, { home: { people: People; gateway: Gateway } }>({
  home: [async ({ demo }, use) => {
    const people = await startProvider()
    providers.push(people.issuer)
    const gateway = await startGateway(demo, 'console_login', { policy: '../../cmd/noisegate/demo_policy.yaml',
      auth: `{issuer: "${people.issuer}", audience: noisegate, keys: {jwks_url: "${people.keys}"}, console: {client_id: console}}` })
    people.serve(gateway.http + '/')
    await use({ people, gateway })
    await gateway.stop()
    await people.stop()
  }, { scope: 'worker', timeout: 60_000 }],
})

const begin = (page: Page) => page.getByRole('button', { name: /^Log in (again )?at 127/ })

// signIn is what somebody does at the provider: a name, a password, and that the console may know who they are.
async function signIn(page: Page, name: string) {
  await page.getByPlaceholder('Enter any login').fill(name)
  await page.getByPlaceholder('and password').fill('any')
  await page.getByRole('button', { name: 'Sign-in' }).click()
  await page.getByRole('button', { name: 'Continue' }).click()
}

test('while the identity provider is gone a token can be pasted, and when it is back people log in there', async ({ page, home: { people, gateway } }) => {
  people.settings.away = true // the gateway has not heard of it yet
  await page.goto(gateway.http)
  await expect(page.getByRole('alert')).toContainText('identity provider does not answer as it should')
  await expect(page.getByLabel('Your token')).toBeVisible()
  await accessible(page)
  people.settings.away = false
  await page.waitForTimeout(1100) // the gateway asks it once a second
  await page.getByRole('button', { name: 'Try again' }).click()
  await expect(begin(page)).toBeVisible()
  await accessible(page)
  if (process.env.SCREENSHOTS) await page.screenshot({ path: `${process.env.SCREENSHOTS}/Login-1280.png` })
})

test('who logs in at the identity provider asks, and nothing of it stays in an address', async ({ page, home: { people, gateway } }) => {
  const sent: string[] = []
  page.on('request', r => { if (r.url().startsWith(gateway.http)) sent.push(r.url()) })
  await page.goto(gateway.http + '/#/budget')
  await begin(page).click()
  const asked = new URL(page.url())
  await signIn(page, 'ana+analyst')
  await expect(page.getByRole('heading', { name: 'Budget', exact: true })).toBeVisible() // the page on which it was begun
  await expect(page.getByText('ana+analyst', { exact: true })).toBeVisible()
  expect(page.url()).toBe(gateway.http + '/#/budget')
  expect(asked.origin).toBe(people.issuer)
  expect(sent.filter(url => /code=|state=|eyJ/.test(url))).toEqual([])
  expect(await page.evaluate(() => Object.keys(sessionStorage))).toEqual(['noisegate-token'])
  await page.getByRole('link', { name: 'Ask' }).click()
  await page.getByRole('button', { name: /^Run for/ }).click()
  await expect(page.getByRole('region', { name: 'Answer', exact: true })).toContainText('Spent ε 0.1')
  await page.goBack()
  await page.goBack()
  await expect(page).not.toHaveURL(/code=|state=/)

  await page.goto(gateway.http)
  await page.getByRole('button', { name: 'Log out' }).click()
  expect(await page.evaluate(() => sessionStorage.length)).toBe(0)
  const there = page.getByRole('link', { name: 'log out there' })
  expect(new URL((await there.getAttribute('href'))!).origin).toBe(people.issuer)
  await accessible(page)
  await there.click()
  await page.getByRole('button', { name: /sign me out/i }).click()
  await page.goto(gateway.http)
  await begin(page).click()
  await expect(page.getByPlaceholder('Enter any login')).toBeVisible() // it does not know them any more
})

test('an answer that was not asked for here is left aside', async ({ page, home: { gateway } }) => {
  const asked: string[] = []
  page.on('request', r => { if (r.url().endsWith('/v1/login/provider')) asked.push(r.url()) })
  for (const answer of ['code=stolen&state=made-up', 'state=', 'error=x&error_description=call+0900&state=made-up', 'code=a&state=x&state=y']) {
    await page.goto('about:blank')
    await page.goto(`${gateway.http}/#${answer}`)
    await expect(page.getByRole('alert')).toContainText('This log-in was not begun in this tab')
    await expect(page.getByText('call 0900')).toHaveCount(0)
    expect(page.url()).toBe(gateway.http + '/')
  }
  await begin(page).click() // one is under way, and another one's answer comes
  await expect(page.getByPlaceholder('Enter any login')).toBeVisible()
  await page.goto(`${gateway.http}/#code=stolen&state=made-up`)
  await expect(page.getByRole('alert')).toContainText('This log-in was not begun in this tab')
  await begin(page).click()
  await signIn(page, 'bob+analyst')
  await expect(page.getByRole('heading', { name: 'Ask', exact: true })).toBeVisible()
  await page.evaluate(() => { location.hash = '#code=stolen&state=made-up' }) // a link in an open tab ends no session
  await expect(page.getByRole('alert').first()).toContainText('This log-in was not begun in this tab')
  await expect(page.getByText('bob+analyst', { exact: true })).toBeVisible()
  expect(asked.length).toBe(1)
})

test('another issuer that answers is named, and its code is not sent anywhere', async ({ page, home: { gateway } }) => {
  await page.goto(gateway.http)
  await begin(page).click()
  await expect(page.getByPlaceholder('Enter any login')).toBeVisible()
  const state = new URL(page.url()).searchParams.get('state') ?? await stateOf(page, gateway)
  await page.goto(`${gateway.http}/#code=x&state=${state}&iss=https%3A%2F%2Fevil.example`)
  await expect(page.getByRole('alert')).toContainText('Another identity provider answered')
})

// stateOf is the state of the log-in that is under way, which only its tab has.
async function stateOf(page: Page, gateway: Gateway): Promise<string> {
  await page.goto(gateway.http)
  return page.evaluate(() => JSON.parse(sessionStorage.getItem('noisegate-login')!).state)
}

test('who does not let the provider say who they are is told so', async ({ page, home: { gateway } }) => {
  await page.goto(gateway.http)
  await begin(page).click()
  await page.getByRole('link', { name: 'Cancel' }).click()
  await expect(page.getByRole('alert')).toContainText('The identity provider did not log you in: End-User aborted interaction')
  await expect(begin(page)).toBeVisible()
})

test('a code that is too old, was used, or has another verifier logs nobody in', async ({ page, home: { people, gateway } }) => {
  const fails = async (words: string) => {
    await expect(page.getByRole('alert')).toContainText(words)
    await expect(begin(page)).toBeVisible()
    expect(await page.evaluate(() => sessionStorage.length)).toBe(0)
  }
  people.settings.codeLife = 1
  await page.route('**/v1/login/provider', async route => { await new Promise(resolve => setTimeout(resolve, 2500)); await route.continue() }, { times: 1 })
  await page.goto(gateway.http)
  await begin(page).click()
  await signIn(page, 'cleo+analyst')
  await fails('the log-in is not valid')
  people.settings.codeLife = 60

  for (const change of [{ code_verifier: 'v'.repeat(43) }, { nonce: 'n'.repeat(43) }, { redirect_uri: 'https://evil.example/' }]) {
    await page.route('**/v1/login/provider', route => route.continue({ postData: JSON.stringify({ ...route.request().postDataJSON(), ...change }) }), { times: 1 })
    await begin(page).click()
    await fails('the log-in is not valid')
  }
  await page.route('**/v1/login/provider', async route => { await route.fetch(); await route.continue() }, { times: 1 })
  await begin(page).click()
  await fails('the log-in is not valid')
  await begin(page).click()
  await page.getByRole('button', { name: 'Continue' }).click() // the provider takes back what a code gave that came twice
  await expect(page.getByText('cleo+analyst', { exact: true })).toBeVisible()
})

test('a token that the gateway does not take is said to be one', async ({ page, home: { people, gateway } }) => {
  people.settings.audience = 'another service'
  await page.goto(gateway.http)
  await begin(page).click()
  await signIn(page, 'dan+analyst')
  await expect(page.getByRole('alert')).toContainText('its token is none that this gateway takes')
  people.settings.audience = 'noisegate'
})

test('before a token ends another one is a click away, and what was typed stays', async ({ page, home: { people, gateway } }) => {
  people.settings.tokenLife = 120
  await page.goto(gateway.http)
  await begin(page).click()
  await signIn(page, 'eve+analyst')
  const end = page.getByRole('region', { name: 'End of the log-in' })
  await expect(end).toContainText('You are logged in until')
  await accessible(page)
  if (process.env.SCREENSHOTS) await page.screenshot({ path: `${process.env.SCREENSHOTS}/Ending-1280.png` })
  const editor = page.getByRole('textbox', { name: 'Question in SQL' })
  await expect(editor).toHaveText(/SELECT/)
  await editor.press('Control+A')
  await page.keyboard.insertText('SELECT count(*) FROM visits')
  people.settings.tokenLife = 3600
  await begin(page).click() // the provider knows them still
  await expect(editor).toHaveText('SELECT count(*) FROM visits')
  await expect(end).toHaveCount(0)
})

test('the keyboard is enough to log in', async ({ page, home: { gateway } }) => {
  await page.goto(gateway.http)
  await expect(begin(page)).toBeVisible()
  for (let i = 0; i < 10 && !await begin(page).evaluate(e => e === document.activeElement); i++) await page.keyboard.press('Tab')
  await page.keyboard.press('Enter')
  await expect(page.getByPlaceholder('Enter any login')).toBeVisible()
})

test('an identity provider that goes away in the middle is said to be gone', async ({ page, home: { people, gateway } }) => {
  await page.goto(gateway.http)
  await page.route('**/v1/login/provider', async route => { await people.stop(); await route.continue() })
  await begin(page).click()
  await signIn(page, 'fay+analyst')
  await expect(page.getByRole('alert')).toContainText('the identity provider does not answer as it should')
  await expect(page.getByLabel('Your token')).toBeAttached()
})
