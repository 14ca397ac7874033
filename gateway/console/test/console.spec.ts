// Journeys through the console, in a browser, against a real gateway.

import { expect, type APIRequestContext, type Page } from '@playwright/test'
import { accessible, logIn, startDemo, test, type, type Demo } from './demo'

const run = { name: /^Run/ }
const bySex = 'SELECT sex, count(*) AS n FROM people GROUP BY sex'

test('a one-time code logs in once and does not stay in the address', async ({ page, demo, browser }) => {
  await page.goto(demo.console)
  await expect(page.getByRole('heading', { name: 'Ask', exact: true })).toBeVisible()
  expect(page.url()).toBe(demo.http + '/')
  await page.reload()
  await expect(page.getByRole('heading', { name: 'Ask', exact: true })).toBeVisible()
  const other = await (await browser.newContext()).newPage()
  await other.goto(demo.console)
  await expect(other.getByRole('alert')).toContainText('the code is not valid')
  await other.close()
})

test('a price is seen before it is paid, and a question is paid once', async ({ page, demo }) => {
  const asked: string[] = []
  page.on('request', r => { if (r.method() === 'POST' && r.url().endsWith('/v1/query')) asked.push(r.headers()['idempotency-key']) })
  await logIn(page, demo, demo.token('once'))
  await type(page, bySex)
  const button = page.getByRole('button', run)
  await expect(button).toBeDisabled() // nothing is known of this text yet
  await expect(button).toHaveText('Run for ε 0.1')
  await expect(button).toBeEnabled()
  await expect(page.getByRole('region', { name: 'Estimate' })).toContainText('about ε 2.9 left after it')

  await type(page, bySex + ' ')
  await expect(button).toBeDisabled()
  await expect(button).toHaveText('Run for ε 0.1')
  await button.dblclick()
  const answer = page.getByRole('region', { name: 'Answer', exact: true })
  await expect(answer).toContainText('Spent ε 0.1; ε 2.9, δ 5·10⁻⁸ left.')
  await expect(answer.locator('svg .bar')).toHaveCount(2)
  await expect(answer.locator('svg .whisker')).toHaveCount(2)
  await expect(answer.getByRole('row')).toHaveCount(3)
  await expect(answer.getByRole('table')).toContainText(/Female\s*[\d,.]+\s*[\d,.]+ to [\d,.]+/)
  expect(asked.length).toBe(1)

  await expect(button).toHaveText('Run, free')
  await button.click()
  await expect(answer).toContainText('Free: you asked this before')
  expect(new Set(asked).size).toBe(2)
  await page.getByRole('link', { name: 'Budget' }).click()
  await expect(page.getByRole('region', { name: 'Budget of census' })).toContainText('ε 2.9')
  await page.getByRole('link', { name: 'Ask' }).click()
  await page.getByRole('region', { name: 'History' }).getByRole('button', { name: /SELECT sex/ }).click()
  await expect(answer).toContainText('From your history, free')
})

test('no click pays a price that belongs to another text', async ({ page, demo }) => {
  await logIn(page, demo, demo.token('late'))
  const button = page.getByRole('button', run)
  await expect(button).toBeEnabled()
  let release = () => {}
  const held = new Promise<void>(resolve => { release = resolve })
  await page.route('**/v1/query/estimate', async route => { await held; await route.continue() })
  await type(page, bySex)
  await page.waitForTimeout(700) // longer than the pause after which the gateway is asked
  await expect(button).toBeDisabled()
  await page.keyboard.press('Control+Enter')
  await type(page, 'SELECT count(*) FROM people')
  await expect(button).toBeDisabled()
  await expect(page.getByRole('region', { name: 'Answer', exact: true })).toHaveCount(0)
  release()
  await expect(button).toBeEnabled()
})

test('a price that changed since it was shown is not paid', async ({ page, demo }) => {
  await logIn(page, demo, demo.token('overnight'))
  await type(page, bySex)
  const button = page.getByRole('button', run)
  await expect(button).toHaveText('Run for ε 0.1')
  let asked = 0
  await page.route('**/v1/query', route => { asked++; return route.continue() })
  await page.route('**/v1/query/estimate', async route => { // as if the policy had another default now
    const answer = await route.fetch()
    const estimate = await answer.json()
    estimate.price.epsilon = '1'
    await route.fulfill({ response: answer, json: estimate })
  })
  await button.click()
  await expect(page.getByRole('status').filter({ hasText: 'The price has changed' })).toBeVisible()
  await expect(button).toHaveText('Run for ε 1')
  expect(asked).toBe(0)
})

// changePolicy applies the policy of the demo with a change, as a steward.
async function changePolicy(request: APIRequestContext, demo: Demo, change: (text: string) => string) {
  const steward = { Authorization: `Bearer ${demo.tokens.steward}` }
  const address = `${demo.http}/v1/datasets/census/policy`
  const policy = await request.get(address, { headers: steward })
  const text = await policy.text()
  expect(change(text)).not.toBe(text)
  const changed = await request.put(address, {
    headers: { ...steward, 'If-Match': policy.headers().etag, 'Content-Type': 'application/yaml' }, data: change(text),
  })
  expect(changed.status()).toBe(200)
}

test('a click pays only the price that it named, whatever policy is in force by then', async ({ page, demo, request }) => {
  const token = demo.token('between')
  await logIn(page, demo, token)
  await type(page, bySex)
  const button = page.getByRole('button', run)
  await expect(button).toHaveText('Run for ε 0.1')
  const sent: any[] = []
  await page.route('**/v1/query', async route => { // the estimate of the click has come: what is left is to pay
    sent.push(route.request().postDataJSON().at_most)
    if (sent.length === 1) await changePolicy(request, demo, text => text.replaceAll('default_epsilon: 0.1', 'default_epsilon: 0.2'))
    await route.continue()
  })
  await button.click()
  await expect(page.getByRole('status').filter({ hasText: 'The price has changed' })).toBeVisible()
  await expect(button).toHaveText('Run for ε 0.2')
  const budget = await request.get(`${demo.http}/v1/budget`, { headers: { Authorization: `Bearer ${token}` } })
  expect((await budget.json()).budgets[0].spent.epsilon).toBe('0')
  await button.click()
  await expect(page.getByRole('region', { name: 'Answer', exact: true })).toContainText('Spent ε 0.2')
  expect(sent).toEqual([{ epsilon: '0.1', delta: '0' }, { epsilon: '0.2', delta: '0' }])
  await changePolicy(request, demo, text => text.replaceAll('default_epsilon: 0.2', 'default_epsilon: 0.1'))
})

test('who breaks off pays once', async ({ page, demo }) => {
  await logIn(page, demo, demo.token('broken'))
  await type(page, bySex)
  const keys: string[] = []
  await page.route('**/v1/query', async route => {
    keys.push(route.request().headers()['idempotency-key'])
    if (keys.length > 1) return route.continue()
    await route.fetch() // the gateway answers, and nobody hears it
    await route.abort()
  })
  const button = page.getByRole('button', run)
  await expect(button).toHaveText('Run for ε 0.1')
  await button.click()
  await expect(page.getByRole('alert')).toContainText('The gateway cannot be reached')
  await expect(button).toHaveText('Run, free')
  await button.click()
  await expect(page.getByRole('region', { name: 'Answer', exact: true })).toContainText('Free')
  expect(keys.length).toBe(2)
  expect(keys[0]).toBe(keys[1])
})

for (const [status, code] of [[503, 'data/unavailable'], [409, 'request/in-flight'], [500, 'internal'], [422, 'sql/unsupported']] as const) {
  test(`who was told ${code} asks again under ${status === 422 ? 'another' : 'the same'} key`, async ({ page, demo }) => {
    await logIn(page, demo, demo.token('failed' + status))
    const keys: string[] = []
    await page.route('**/v1/query', async route => {
      keys.push(route.request().headers()['idempotency-key'])
      if (keys.length > 1) return route.continue()
      await route.fulfill({ status, contentType: 'application/problem+json', json: { status, code, detail: 'as it was told' } })
    })
    await type(page, bySex)
    const button = page.getByRole('button', run)
    await expect(button).toHaveText('Run for ε 0.1')
    await button.click()
    await expect(page.getByRole('alert')).toContainText('as it was told')
    await expect(button).toHaveText('Run for ε 0.1')
    await button.click()
    await expect(page.getByRole('region', { name: 'Answer', exact: true })).toContainText('Spent')
    expect(keys.length).toBe(2)
    expect(keys[0] === keys[1]).toBe(status !== 422)
  })
}

test('an empty budget says so before anything is asked', async ({ page, demo, request }) => {
  const token = demo.token('poor')
  for (const sql of ['SELECT count(*) FROM people', 'SELECT sum(age) FROM people', 'SELECT avg(age) FROM people']) {
    const answer = await request.post(demo.http + '/v1/query', { headers: { Authorization: `Bearer ${token}` }, data: { dataset: 'census', sql, epsilon: '1' } })
    expect(answer.status()).toBe(200)
  }
  await logIn(page, demo, token)
  await type(page, bySex)
  await expect(page.getByText('More than what is left of your budget.')).toBeVisible()
  await expect(page.getByRole('button', run)).toBeDisabled()
  await type(page, 'SELECT count(*) FROM people')
  await page.getByLabel('ε', { exact: true }).fill('1')
  await expect(page.getByRole('button', { name: 'Run, free' })).toBeEnabled()
  await page.getByRole('link', { name: 'Budget' }).click()
  await expect(page.getByRole('meter')).toHaveAttribute('aria-valuenow', '100')
})

test('a refusal stands at its place, and its suggestion is one click', async ({ page, demo }) => {
  await logIn(page, demo, demo.token('wrong'))
  await type(page, 'SELECT sex,\n  cuont(*) FROM people GROUP BY sex')
  const estimate = page.getByRole('region', { name: 'Estimate' })
  await expect(estimate).toContainText('Line 2, column 3.')
  await expect(page.locator('.cm-error')).toHaveText('cuont')
  await expect(page.getByRole('button', run)).toBeDisabled()
  await type(page, 'SELECT sum(DISTINCT age) FROM people')
  await expect(estimate.getByRole('alert')).toContainText('DISTINCT')
})

test('the editor completes tables, columns and functions', async ({ page, demo }) => {
  await logIn(page, demo, demo.token('typist'))
  const editor = page.getByRole('textbox', { name: 'Question in SQL' })
  await editor.press('Control+A')
  await editor.pressSequentially('SELECT medi')
  await expect(page.locator('.cm-tooltip-autocomplete')).toContainText('median(x)')
  await editor.press('Control+A')
  await editor.pressSequentially('SELECT marital')
  await expect(page.locator('.cm-tooltip-autocomplete')).toContainText('marital_status')
  await editor.press('Control+A')
  await editor.pressSequentially('SELECT count(*) FROM vis')
  await expect(page.locator('.cm-tooltip-autocomplete')).toContainText('visits')
})

test('points over numbers, cards for one row', async ({ page, demo }) => {
  await logIn(page, demo, demo.token('figures'))
  const answer = page.getByRole('region', { name: 'Answer', exact: true })
  await type(page, 'SELECT age / 10 * 10 AS decade, count(*) AS n, avg(hours_per_week) AS hours FROM people GROUP BY 1 ORDER BY 1')
  await page.getByRole('button', { name: /^Run for/ }).click()
  await expect(answer.locator('svg .point').first()).toBeVisible()
  await answer.getByRole('button', { name: 'hours' }).click()
  await expect(answer.getByRole('figure')).toContainText('hours by decade')
  await accessible(page)
  await type(page, 'SELECT count(*) AS people, avg(age) AS age FROM people')
  await page.getByRole('button', { name: /^Run for/ }).click()
  await expect(answer.locator('.cards .value')).toHaveCount(2)
  await accessible(page)
})

test('what is taken out of the page is the answer and the question', async ({ page, demo }) => {
  await logIn(page, demo, demo.token('taker'))
  await type(page, `SELECT sex, count(*) AS n FROM people WHERE education <> 'it''s' GROUP BY sex`)
  await page.getByRole('button', { name: /^Run for/ }).click()
  const downloads = page.waitForEvent('download')
  await page.getByRole('button', { name: 'Download CSV' }).click()
  const stream = await (await downloads).createReadStream()
  let csv = ''
  for await (const chunk of stream) csv += chunk
  expect(csv).toMatch(/^sex,n,n_low,n_high\r\nFemale,[\d.-]+,[\d.-]+,[\d.-]+\r\nMale,/)
  for (const [name, holds] of [['curl', `'\\'''\\''`], ['Python', 'noisegate.Client("http://127.0.0.1'], ['psql', 'psql "$URL" -c ']]) {
    await page.getByRole('button', { name: `Copy as ${name}` }).click()
    const copied = await page.evaluate(() => navigator.clipboard.readText())
    expect(copied).toContain(holds)
    expect(copied).not.toContain('eyJ')
  }
})

test('hostile keys, names and refusals are text', async ({ page, demo, request }) => {
  const steward = { Authorization: `Bearer ${demo.tokens.steward}` }
  const address = `${demo.http}/v1/datasets/census/policy`
  const policy = await request.get(address, { headers: steward })
  const hostile = ['<img src=x onerror=alert(1)>', '\u202Egnp.exe', 'بدون', '=1+1', '"></bdi><script>alert(2)</script>']
  const list = hostile.map(key => JSON.stringify(key)).join(', ')
  const changed = await request.put(address, {
    headers: { ...steward, 'If-Match': policy.headers().etag, 'Content-Type': 'application/yaml' },
    data: (await policy.text()).replace('domain: [Female, Male]', `domain: [Female, Male, ${list}]`),
  })
  expect(changed.status()).toBe(200)
  page.on('dialog', () => { throw new Error('a script ran') })
  await logIn(page, demo, demo.token('hostile<b>"&'))
  await expect(page.getByText('hostile<b>"&')).toBeVisible()
  await type(page, `SELECT sex, count(*) AS "<script>alert(3)</script>" FROM people GROUP BY sex`)
  await page.getByRole('button', { name: /^Run for/ }).click()
  const answer = page.getByRole('region', { name: 'Answer', exact: true })
  for (const key of hostile) await expect(answer.getByRole('cell', { name: key, exact: true })).toHaveText(key)
  await expect(answer.getByRole('columnheader').nth(1)).toContainText('<script>alert(3)</script>')
  expect(await answer.locator('img, script, b').count()).toBe(0)
  await accessible(page)
  await type(page, 'SELECT "<img src=x onerror=alert(4)>" FROM people')
  await expect(page.getByRole('region', { name: 'Estimate' })).toContainText('<img src=x onerror=alert(4)>')
})

// answered runs a question that gets the rows [key, number] with keys of a type.
async function answered(page: Page, demo: Demo, type: string, rows: (string | number)[][]) {
  await page.route('**/v1/query', route => route.fulfill({ json: {
    release_id: 'x', dataset: 'census', replayed: false, spent: { epsilon: '0.1', rho: '0.005', delta: '0' },
    remaining: { epsilon: '2.9', rho: null, delta: null }, notes: [],
    columns: [{ name: 'k', type, kind: 'key', half_width: null }, { name: 'n', type: 'bigint', kind: 'aggregate', half_width: 30, digits: 0 }],
    rows, intervals: rows.map(([, n]) => [null, [Number(n) - 30, Number(n) + 30]]),
  } }))
  await logIn(page, demo, demo.token(`answered ${type}`))
  await page.getByRole('button', { name: /^Run for/ }).click()
}

for (const [type, cut] of [['text', '40'], ['bigint', '2,000']]) {
  test(`a hundred thousand groups are shown: ${type}`, async ({ page, demo }) => {
    await answered(page, demo, type, Array.from({ length: 100_000 }, (_, i) => [type === 'text' ? `key ${i}` : i, i]))
    await expect(page.getByText('200 of 100,000 rows')).toBeVisible()
    await expect(page.getByText(`the first ${cut} of 100,000 groups`)).toBeVisible()
  })
}

test('keys beyond 2^53 are numbers, and no figure takes the table away', async ({ page, demo }) => {
  await answered(page, demo, 'bigint', [['153122387330596881', 40], ['9007199254740993', 50]])
  const answer = page.getByRole('region', { name: 'Answer', exact: true })
  await expect(answer.locator('svg .point')).toHaveCount(2)
  await expect(answer.getByRole('cell', { name: '9007199254740993' })).toBeVisible()
  await expect(answer.getByRole('button', { name: 'Download CSV' })).toBeVisible()
})

test('a code in an open tab leaves the address, and a wrong one ends no session', async ({ page, demo }) => {
  await logIn(page, demo, demo.token('open'))
  await page.evaluate(() => { location.hash = '#code=wrong' })
  await expect(page.getByRole('alert').first()).toContainText('the code is not valid')
  expect(page.url()).toBe(demo.http + '/')
  await expect(page.getByRole('heading', { name: 'Ask', exact: true })).toBeVisible()
})

test('what cannot be a token is refused and not kept', async ({ page, demo }) => {
  await logIn(page, demo, 'tökén')
  await expect(page.getByRole('alert')).toContainText('This is no token.')
  expect(await page.evaluate(() => sessionStorage.length)).toBe(0)
})

test('a steward sees what is promised, spent, asked and refused, and every text of others as text', async ({ page, demo, request }) => {
  const hostile = 'eve<img src=x onerror=alert(1)>'
  const headers = { Authorization: `Bearer ${demo.token(hostile)}` }
  const ask = (sql: string) => request.post(demo.http + '/v1/query', { headers, data: { dataset: 'census', sql, epsilon: '0.2' } })
  expect((await ask(`SELECT count(*) AS "<script>alert(2)</script>" FROM people`)).status()).toBe(200)
  expect((await ask('SELECT age FROM people')).status()).toBe(422)
  page.on('dialog', () => { throw new Error('a script ran') })
  await logIn(page, demo, demo.tokens.steward)
  await expect(page.getByRole('heading', { name: 'Steward', level: 1 })).toBeVisible()
  await expect(page.getByRole('link', { name: 'Ask', exact: true })).toHaveCount(0)
  await expect(page.getByRole('region', { name: 'Promise' })).toContainText('ε 20, δ 10⁻⁶')
  await expect(page.getByRole('region', { name: 'Promise' })).toContainText('at most 99.99999980 %') // e^20/(1+e^20)
  await expect(page.getByRole('region', { name: 'Accounts', exact: true })).toContainText(`analyst:${hostile}`)
  await expect(page.getByRole('region', { name: 'Journal', exact: true })).toContainText('SELECT count(*) AS "<script>alert(2)</script>" FROM people')
  await expect(page.getByRole('region', { name: 'Refusals', exact: true })).toContainText('policy/not-aggregate')
  await expect(page.getByRole('region', { name: 'Policy', exact: true })).toContainText('dataset: census')
  expect(await page.locator('main img, main script').count()).toBe(0)
  await accessible(page)
  await page.setViewportSize({ width: 360, height: 900 })
  await accessible(page)
  expect(await page.evaluate(() => document.scrollingElement!.scrollWidth)).toBeLessThanOrEqual(360)
  if (process.env.SCREENSHOTS) await page.screenshot({ path: `${process.env.SCREENSHOTS}/Steward-360.png`, fullPage: true })
  await page.setViewportSize({ width: 1280, height: 900 })
  if (process.env.SCREENSHOTS) await page.screenshot({ path: `${process.env.SCREENSHOTS}/Steward-1280.png`, fullPage: true })
})

test('labels are bought at a price that was seen, and taken again free', async ({ page, demo }) => {
  await logIn(page, demo, demo.tokens.ml)
  await page.getByRole('link', { name: 'Labels' }).click()
  await page.getByLabel('Ensemble').fill('digits')
  await page.getByRole('button', { name: 'Open' }).click()
  const purchase = page.getByRole('region', { name: 'Purchase' })
  await expect(purchase).toContainText('sealed')
  const button = purchase.getByRole('button', { name: /^(Buy|Take)/ })
  await expect(button).toBeDisabled()
  await page.getByLabel('σ').fill('40')
  await page.getByLabel('Queries, by name').fill('0, 1\n2')
  await expect(button).toHaveText(/^Buy for at most [ερ] [\d.]+/)
  await button.dblclick()
  const labels = page.getByRole('region', { name: 'Labels', exact: true })
  await expect(labels).toContainText('Spent')
  await expect(labels.getByRole('row')).toHaveCount(4)
  await expect(button).toHaveText('Take, free')
  await button.click()
  await expect(labels).toContainText('Free: you bought these before.')
  await accessible(page)
  if (process.env.SCREENSHOTS) await page.screenshot({ path: `${process.env.SCREENSHOTS}/Labels-1280.png`, fullPage: true })
})

test('an expired token leads back to the login', async ({ page, demo }) => {
  await logIn(page, demo, demo.token('old', ['analyst'], -60))
  await expect(page.getByRole('alert')).toContainText('the token expired')
  await expect(page.getByLabel('Your token')).toBeVisible()
  expect(await page.evaluate(() => sessionStorage.length)).toBe(0)
})

test('each page is accessible, at every width, in the light and in the dark', async ({ page, demo }) => {
  await page.goto(demo.http)
  await accessible(page)
  await logIn(page, demo, demo.token('reader'))
  await type(page, 'SELECT education, count(*) AS n, avg(hours_per_week) AS hours FROM people GROUP BY education ORDER BY n DESC')
  await page.getByLabel('ε', { exact: true }).fill('0.5')
  await page.getByRole('button', { name: /^Run for/ }).click()
  await expect(page.locator('svg .bar').first()).toBeVisible()
  for (const name of ['Ask', 'Budget']) {
    await page.getByRole('link', { name }).click()
    await expect(page.getByRole('heading', { name, level: 1 })).toBeVisible()
    if (name === 'Budget') await expect(page.getByRole('meter')).toBeVisible()
    for (const colorScheme of ['light', 'dark'] as const) {
      await page.emulateMedia({ colorScheme })
      for (const width of [360, 1280, 3840]) {
        await page.setViewportSize({ width, height: 900 })
        if (width < 3840) await accessible(page)
        expect(await page.evaluate(() => document.scrollingElement!.scrollWidth)).toBeLessThanOrEqual(width)
        if (process.env.SCREENSHOTS) await page.screenshot({ path: `${process.env.SCREENSHOTS}/${name}-${colorScheme}-${width}.png`, fullPage: true })
      }
    }
  }
})

test('the keyboard is enough', async ({ page, demo }) => {
  await page.goto(demo.http)
  await expect(page.getByLabel('Your token')).toBeFocused()
  await page.keyboard.insertText(demo.token('keys'))
  await page.keyboard.press('Enter')
  await expect(page.getByRole('button', run)).toBeEnabled()
  const focused = () => page.evaluate(() => {
    const active = document.activeElement
    return active?.shadowRoot?.activeElement?.getAttribute('aria-label') ?? active?.textContent ?? ''
  })
  for (let i = 0; i < 20 && await focused() !== 'Question in SQL'; i++) await page.keyboard.press('Tab')
  expect(await focused()).toBe('Question in SQL')
  await page.keyboard.press('Control+Enter')
  await expect(page.getByRole('region', { name: 'Answer', exact: true })).toContainText('Spent')
  await page.keyboard.press('Shift+Tab') // Tab leaves the editor
  expect(await focused()).toBe('More')
})

test('when the gateway is gone, what was typed stays', async ({ page }) => {
  const demo = await startDemo()
  await logIn(page, demo, demo.token('left'))
  await expect(page.getByRole('button', run)).toBeEnabled()
  await demo.stop()
  await type(page, bySex)
  await expect(page.getByRole('region', { name: 'Estimate' })).toContainText('The gateway cannot be reached.')
  await expect(page.getByRole('button', run)).toBeDisabled()
  await expect(page.getByRole('textbox', { name: 'Question in SQL' })).toHaveText(bySex)
})
