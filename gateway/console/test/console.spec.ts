// Journeys through the console, in a browser, against a real gateway.

import { expect, type APIRequestContext, type Page } from '@playwright/test'
import { execFileSync } from 'node:child_process'
import { readFileSync, writeFileSync } from 'node:fs'
import { accessible, logIn, program, startDemo, test, type, type Demo } from './demo'
import { startGateway } from './gateway'

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
  const estimate = page.getByRole('region', { name: 'Estimate' })
  await expect(estimate).toContainText('about ε 2.9 left after it')
  await expect(estimate.getByRole('row').last().getByRole('cell').first()).toHaveText('ncount(*)') // a column, and what is released for it

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
  for (const [name, holds] of [['curl', `'\\'''\\''`], ['Python', 'noisegate.Client("http://127.0.0.1'], ['psql', 'psql "$URL" -v ON_ERROR_STOP=1 -c ']]) {
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
async function answered(page: Page, demo: Demo, type: string, rows: (string | number)[][], error = 30) {
  await page.route('**/v1/query', route => route.fulfill({ json: {
    release_id: 'x', dataset: 'census', replayed: false, spent: { epsilon: '0.1', rho: '0.005', delta: '0' },
    remaining: { epsilon: '2.9', rho: null, delta: null }, notes: [],
    columns: [{ name: 'k', type, kind: 'key', half_width: null }, { name: 'n', type: 'bigint', kind: 'aggregate', half_width: 30, digits: 0 }],
    rows, intervals: rows.map(([, n]) => [null, [Number(n) - error, Number(n) + error]]),
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

test('a hundred thousand groups are answered', async ({ page, demo }) => {
  await logIn(page, demo, demo.token('many groups'))
  await type(page, 'SELECT capital_gain, count(*) AS n FROM people GROUP BY 1')
  await page.getByRole('button', { name: /^Run for/ }).click()
  await expect(page.getByText('200 of 100,000 rows')).toBeVisible({ timeout: 30_000 })
  await expect(page.getByText('the first 2,000 of 100,000 groups')).toBeVisible()
  await accessible(page)
})

test('keys beyond 2^53 are numbers, and no figure takes the table away', async ({ page, demo }) => {
  await answered(page, demo, 'bigint', [['153122387330596881', 40], ['9007199254740993', 50]])
  const answer = page.getByRole('region', { name: 'Answer', exact: true })
  await expect(answer.locator('svg .point')).toHaveCount(2)
  await expect(answer.getByRole('cell', { name: '9007199254740993' })).toBeVisible()
  await expect(answer.getByRole('button', { name: 'Download CSV' })).toBeVisible()
})

test('intervals are shown no narrower than they are, and no number as -0', async ({ page, demo }) => {
  await answered(page, demo, 'bigint', [[1, -0.25], [2, 1234], [3, 0.25]], 30.125)
  const row = (key: string) => page.getByRole('region', { name: 'Answer', exact: true }).getByRole('row', { name: new RegExp(`^${key} `) })
  await expect(row('1').getByRole('cell')).toHaveText(['1', '0', '-31 to 30'])
  await expect(row('2').getByRole('cell')).toHaveText(['2', '1,234', '1,203 to 1,265'])
  await expect(row('3').getByRole('cell')).toHaveText(['3', '0', '-30 to 31'])
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
  const refusals = page.getByRole('region', { name: 'Refusals', exact: true })
  await request.post(demo.http + '/v1/query/estimate', { headers, data: { dataset: 'census', sql: 'SELECT cou', epsilon: '0.2' } })
  await page.reload()
  await expect(refusals).toContainText(/estimates? (was|were) refused besides/)
  await expect(refusals.getByRole('row').filter({ hasText: hostile })).toHaveCount(1) // what was asked, and not what was half typed
  await everywhere(page, 'Steward')
})

test('labels are bought at a price that was seen, and taken again free', async ({ page, demo }) => {
  await logIn(page, demo, demo.tokens.ml)
  await page.getByRole('link', { name: 'Labels' }).click()
  const ensembles = page.getByRole('region', { name: 'Ensembles', exact: true })
  await expect(ensembles.getByRole('row').filter({ hasText: 'digits' })).toContainText(/sealed .*census/)
  await ensembles.getByRole('button', { name: 'digits' }).click()
  const purchase = page.getByRole('region', { name: 'Purchase' })
  const button = purchase.getByRole('button', { name: /^(Buy|Take)/ })
  await expect(button).toBeDisabled()
  await page.getByLabel('σ').fill('40')
  await page.getByLabel('Queries, by name').fill('0\n1\r\n 2 \n\n2')
  await expect(button).toHaveText(/^Buy for at most [ερ] [\d.]+/)
  const estimate = page.getByRole('region', { name: 'Estimate' })
  await expect(estimate).toContainText('3 labels, 0 of them bought before')
  await expect(estimate.locator('figure svg .line')).toHaveCount(2) // accountants of GNMax
  await expect(estimate.getByRole('table')).toContainText('Rényi, tight: what is charged')
  const curve = async () => Number((await estimate.getByRole('row').last().getByRole('cell').last().textContent()))
  const hundred = await curve()
  expect(hundred).toBeGreaterThan(0)
  await page.getByLabel('σ').fill('80')
  await expect.poll(curve).toBeLessThan(hundred)
  await page.getByLabel('σ').fill('40')
  await expect.poll(curve).toBe(hundred)
  await button.dblclick()
  const labels = page.getByRole('region', { name: 'Labels', exact: true })
  await expect(labels).toContainText('Spent')
  await expect(labels.getByRole('row')).toHaveCount(4)
  await expect(button).toHaveText('Take, free')
  await expect(ensembles.getByRole('row').filter({ hasText: 'digits' }).getByRole('cell').last()).toHaveText('3')
  await expect(estimate).toContainText('you have bought 3')
  await button.click()
  await expect(labels).toContainText('Free: you bought these before.')
  await everywhere(page, 'Labels')
  if (process.env.SCREENSHOTS) await page.screenshot({ path: `${process.env.SCREENSHOTS}/Labels-1280.png`, fullPage: true })
})

// everywhere looks at a page at each width, in the light and in the dark.
async function everywhere(page: Page, name: string) {
  for (const colorScheme of ['light', 'dark'] as const) {
    await page.emulateMedia({ colorScheme })
    for (const width of [360, 1280, 3840]) {
      await page.setViewportSize({ width, height: 900 })
      await accessible(page)
      expect(await page.evaluate(() => document.scrollingElement!.scrollWidth)).toBeLessThanOrEqual(width)
      if (process.env.SCREENSHOTS) await page.screenshot({ path: `${process.env.SCREENSHOTS}/${name}-${colorScheme}-${width}.png`, fullPage: true })
    }
  }
  await page.emulateMedia({ colorScheme: 'light' })
  await page.setViewportSize({ width: 1280, height: 900 })
}

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
    await everywhere(page, name)
  }
})

test('the first paint comes within a second, of few bytes', async ({ demo, browser }) => {
  const paints: number[] = []
  let bytes = 0
  for (let i = 0; i < 5; i++) { // of a browser that has nothing of it yet; the fastest says what the page needs
    const context = await browser.newContext()
    const page = await context.newPage()
    await page.goto(demo.http)
    await expect(page.getByLabel('Your token')).toBeVisible()
    const paint = () => page.evaluate(() => performance.getEntriesByName('first-contentful-paint')[0]?.startTime)
    await expect.poll(paint, 'the browser records the first paint after it has shown it').toBeDefined()
    paints.push((await paint())!)
    bytes = await page.evaluate(() => [...performance.getEntriesByType('navigation'), ...performance.getEntriesByType('resource')]
      .reduce((sum, e) => sum + (e as PerformanceResourceTiming).encodedBodySize, 0))
    await context.close()
  }
  console.log(`first paint after ${paints.map(Math.round).join(', ')} ms, ${bytes} bytes`)
  expect(Math.min(...paints)).toBeLessThan(1000)
  expect(bytes).toBeGreaterThan(50_000)
  expect(bytes).toBeLessThan(300_000)
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

test('a steward changes limits, refills and freezes, seeing before and after', async ({ page, demo, request }) => {
  const who = demo.token('ward<b>')
  const asked = await request.post(demo.http + '/v1/query', { headers: { Authorization: `Bearer ${who}` }, data: { dataset: 'census', sql: 'SELECT count(*) FROM people', epsilon: '0.5' } })
  expect(asked.status()).toBe(200)
  await logIn(page, demo, demo.tokens.steward)
  const accounts = page.getByRole('region', { name: 'Accounts', exact: true })
  const row = accounts.getByRole('row').filter({ hasText: 'analyst:ward<b>' })
  const change = page.getByRole('region', { name: 'Change' })
  await row.getByRole('button', { name: 'Limit' }).click()
  await expect(change.getByRole('button', { name: 'Confirm: limit' })).toBeDisabled() // nothing is changed yet
  await change.getByLabel('ε', { exact: true }).fill('0.25')
  await expect(change.getByRole('row').filter({ hasText: 'now' })).toContainText('ε 3, δ')
  await expect(change.getByRole('row').filter({ hasText: 'then' })).toContainText('ε 0.25, δ')
  await accessible(page)
  await change.getByRole('button', { name: 'Confirm: limit' }).click()
  await expect(row).toContainText('100 % used')
  await row.getByRole('button', { name: 'Refill' }).click()
  await change.getByLabel('ε more').fill('2')
  await change.getByLabel('Reason').fill('a second study')
  await expect(change.getByRole('row').filter({ hasText: 'then' })).toContainText('ε 2.25')
  await change.getByRole('button', { name: 'Confirm: refill' }).click()
  await expect(row).toContainText('refilled 1 times')
  await row.getByRole('button', { name: 'Freeze' }).click()
  await change.getByRole('button', { name: 'Confirm: freeze' }).click()
  await expect(row).toContainText('frozen')
  const refused = await request.post(demo.http + '/v1/query', { headers: { Authorization: `Bearer ${who}` }, data: { dataset: 'census', sql: 'SELECT sum(age) FROM people', epsilon: '0.1' } })
  expect((await refused.json()).code).toBe('budget/frozen')
  await row.getByRole('button', { name: 'Unfreeze' }).click()
  await change.getByRole('button', { name: 'Confirm: unfreeze' }).click()
  await expect(row).toContainText('open')
  await row.getByRole('button', { name: 'Refill' }).click()
  await change.getByLabel('ε more').fill('zwei')
  await expect(change.getByRole('button', { name: 'Confirm: refill' })).toBeDisabled()
})

// ran runs a command as the console shows it, as somebody with a token, and gives what it prints.
function ran(line: string, token: string, keys: Record<string, string>): string {
  for (const [word, with_] of Object.entries(keys)) line = line.replaceAll(word, with_)
  return execFileSync('sh', ['-c', line.replace(/^noisegate /, `"${program}" `)], { encoding: 'utf8', env: { ...process.env, NOISEGATE_TOKEN: token }, stdio: ['ignore', 'pipe', 'ignore'] })
}

// opened has an analyst ask, so that accounts are open.
async function opened(http: string, demo: Demo) {
  const asked = await fetch(http + '/v1/query', { method: 'POST', headers: { Authorization: `Bearer ${demo.token('ana')}`, 'Content-Type': 'application/json' },
    body: JSON.stringify({ dataset: 'census', sql: 'SELECT count(*) FROM people', epsilon: '0.1' }) })
  expect(asked.status).toBe(200)
}

test('what takes two stewards is signed by the other one, and applied with it', async ({ page, demo }) => {
  const key = (name: string) => execFileSync(program, ['budget', 'key', `${demo.dir}/two-${name}.key`, '--steward', name], { encoding: 'utf8', stdio: ['ignore', 'pipe', 'ignore'] })
  writeFileSync(`${demo.dir}/two.pub`, key('sam') + key('eve'))
  writeFileSync(`${demo.dir}/two.policy`, readFileSync('../../cmd/noisegate/demo_policy.yaml', 'utf8') + 'stewards: {two_for: [bounds, cap]}\n')
  const gateway = await startGateway(demo, 'console_two', { policy: `${demo.dir}/two.policy`, stewards: `${demo.dir}/two.pub`,
    auth: `{issuer: noisegate-demo, audience: noisegate, keys: {hs256_file: ${demo.key}}}` })
  const keys = { NAME: 'eve', 'THEIR.key': `${demo.dir}/two-eve.key` }
  const eve = demo.token('eve', ['steward'])
  try {
    await opened(gateway.http, demo)
    await logIn(page, { ...demo, http: gateway.http }, demo.token('sam', ['steward']))
    const policy = page.getByRole('region', { name: 'Policy', exact: true })
    await policy.getByRole('button', { name: 'Edit' }).click()
    const text = policy.getByLabel(/^The policy as YAML/)
    await text.fill((await text.inputValue()).replace('[0, 4356]', '[0, 5000]'))
    await expect(policy.getByText('A second steward has to sign this change, for: bounds.')).toBeVisible()
    await expect(policy.getByRole('region', { name: 'What is signed' })).toContainText(/noisegate policy\/2\nledger: \"[0-9a-f]{64}\"\ndataset: .*\nreplaces version: 1\nsha256 of the new text: [0-9a-f]{64}\nproposer: "sam"/)
    await everywhere(page, 'Approval')
    const apply = policy.getByRole('button', { name: 'Apply' })
    await policy.getByLabel('I have read what it changes').check()
    await apply.click()
    await expect(policy.getByRole('alert')).toContainText('one steward alone does not make this change')
    const downloads = page.waitForEvent('download')
    await policy.getByRole('button', { name: 'Download the text to sign' }).click()
    await (await downloads).saveAs(`${demo.dir}/policy.yaml`)
    const command = (await policy.getByRole('region', { name: /^Command/ }).textContent())!
    const approval = ran(command.replace('policy.yaml', `${demo.dir}/policy.yaml`), eve, keys)
    const box = policy.getByLabel(/^The signature that the command prints/)
    await box.fill(approval)
    await text.fill((await text.inputValue()).replace('[0, 5000]', '[0, 6000]')) // another text takes another signature
    await expect(policy.getByText('It can be applied once a second steward has signed it.')).toBeVisible()
    await expect(box).toHaveValue('')
    await text.fill((await text.inputValue()).replace('[0, 6000]', '[0, 5000]'))
    await expect(policy.getByText('It can be applied once a second steward has signed it.')).toBeVisible()
    await box.fill(approval)
    await policy.getByLabel('I have read what it changes').check()
    await apply.click()
    await expect(policy.getByRole('region', { name: 'Text of the policy' })).toContainText('[0, 5000]')

    const change = page.getByRole('region', { name: 'Change' })
    const row = page.getByRole('region', { name: 'Accounts', exact: true }).getByRole('row').filter({ hasText: 'analyst:ana' })
    for (const deed of ['Limit', 'Refill'] as const) {
      await row.getByRole('button', { name: deed }).click()
      if (deed === 'Limit') await change.getByLabel('ε', { exact: true }).fill('4')
      else {
        await change.getByLabel('ε more').fill('1')
        await change.getByLabel('Reason').fill('a second study')
      }
      const confirm = change.getByRole('button', { name: `Confirm: ${deed.toLowerCase()}` })
      await confirm.click()
      await expect(change.getByRole('alert')).toContainText(/steward/)
      const line = (await change.getByRole('region', { name: 'Command: Where two stewards are needed: the other one' }).textContent())!
      await change.getByLabel(/^The signature that the command prints/).fill(ran(line, eve, keys))
      await confirm.click()
      await expect(row).toContainText(deed === 'Limit' ? 'ε 4, δ' : 'ε 5, δ')
    }
  } finally {
    await gateway.stop()
  }
})

test('a refill is signed where the key is, and the page hands the signature on', async ({ page, demo }) => {
  const key = (name: string) => {
    writeFileSync(`${demo.dir}/${name}.pub`, execFileSync(program, ['budget', 'key', `${demo.dir}/${name}.key`], { stdio: ['ignore', 'pipe', 'ignore'] }))
    return `${demo.dir}/${name}.key`
  }
  const [ours, theirs] = [key('stella'), key('mallory')]
  const gateway = await startGateway(demo, 'console_signed', { policy: '../../cmd/noisegate/demo_policy.yaml', stewards: `${demo.dir}/stella.pub`,
    auth: `{issuer: noisegate-demo, audience: noisegate, keys: {hs256_file: ${demo.key}}}` })
  try {
    const token = demo.token('sam', ['steward'])
    await opened(gateway.http, demo)
    await logIn(page, { ...demo, http: gateway.http }, token)
    await page.getByRole('button', { name: 'Refill dataset' }).press('Enter')
    const change = page.getByRole('region', { name: 'Change' })
    await change.getByLabel('ε more').fill('1')
    await change.getByLabel('Reason').fill(`it's "<b>"; $(true)`)
    const confirm = change.getByRole('button', { name: 'Confirm: refill' })
    await confirm.press('Enter')
    await expect(change.getByRole('alert')).toContainText('only with a steward\'s signature')
    const box = change.getByLabel(/^The signature that the command prints/)
    await expect(box).toBeVisible() // the refusal opens it
    await everywhere(page, 'Signing')
    const command = (await change.getByRole('region', { name: 'Command: Where refills are signed' }).textContent())!
    expect(command).toContain('budget refill census dataset --epsilon 1')
    await box.fill('{"key": 1}')
    await expect(change.getByRole('status').filter({ hasText: 'This is no signature' })).toBeVisible()
    await box.fill(ran(command, token, { 'YOUR.key': theirs }))
    await confirm.press('Enter')
    await expect(change.getByRole('alert')).toContainText(/key/) // nobody knows it
    const signed = ran(command, token, { 'YOUR.key': ours })
    await change.getByLabel('File of the signature').setInputFiles({ name: 's.json', mimeType: 'application/json', buffer: Buffer.from(signed) })
    await expect(change.getByRole('status').filter({ hasText: 'It goes with the change.' })).toBeVisible()
    await change.getByLabel('ε more').fill('2') // it was signed for another amount
    await confirm.press('Enter')
    await expect(change.getByRole('alert')).toContainText(/sign/)
    await change.getByLabel('ε more').fill('1')
    await confirm.press('Enter')
    await expect(page.getByRole('row').filter({ hasText: 'dataset' }).first()).toContainText('refilled 1 times')
    await expect(page.getByRole('region', { name: 'Promise' })).toContainText('ε 21')
  } finally {
    await gateway.stop()
  }
})

test('a ledger is verified, burnt down, and its bounds are told in noise', async ({ page, demo }) => {
  await logIn(page, demo, demo.tokens.steward)
  const ledger = page.getByRole('region', { name: 'Ledger' })
  await ledger.getByRole('button', { name: 'Verify' }).click()
  await expect(ledger.getByRole('status')).toContainText(/entries and all accounts agree.*[0-9a-f]{64}/)
  await page.route('**/verify', route => route.fulfill({ json: { dataset: 'census', seq: 0, hash: '', entries: 0, unchained: 0,
    broken: 'budget: the ledger of census is broken at entry 7: <img src=x onerror=alert(1)>' } }), { times: 1 })
  await ledger.getByRole('button', { name: 'Verify' }).click()
  await expect(ledger.getByRole('alert')).toContainText('is broken at entry 7: <img')
  const burnt = page.getByRole('region', { name: 'Burn-down' })
  await expect(burnt.locator('svg .line').first()).toBeVisible()
  await expect(burnt.getByRole('status')).toContainText('a day in the last 7 days')
  const bounds = page.getByRole('region', { name: 'Bounds' })
  await bounds.getByLabel('Table').selectOption('visits')
  const count = bounds.getByRole('status')
  const before = await count.textContent()
  await bounds.getByLabel(/^ε of the question/).fill('-3')
  await expect(count).not.toHaveText(before!)
  await page.emulateMedia({ media: 'print' })
  await expect(page.getByRole('button', { name: 'Verify' })).toBeHidden()
  await expect(page.getByRole('region', { name: 'Promise' })).toBeVisible()
  if (process.env.SCREENSHOTS) await page.pdf({ path: `${process.env.SCREENSHOTS}/officer.pdf` })
})

test('a steward sees what bounds keep, in a report that an analyst bought, beside their noise', async ({ page, demo }) => {
  const text = execFileSync(program, ['bounds', 'visits', `--url=${demo.http}`, '--epsilon=2.5', '--by=region', '--column=amount', '--json'],
    { encoding: 'utf8', env: { ...process.env, NOISEGATE_TOKEN: demo.token('buyer') } })
  const bought = JSON.parse(text)
  const kept = (bounds: string) => bought.histograms.find((h: any) => h.bounds === bounds).kept as { bound: number; share: number; low: number; high: number }[]
  const said = (bounds: string, value: number) => {
    const { share, low, high } = kept(bounds).filter(k => k.bound <= value).at(-1)!
    const percent = (n: number) => (n / 10).toFixed(1)
    return `keeps about ${percent(Math.round(1000 * share))} % (${percent(Math.floor(1000 * low))} to ${percent(Math.ceil(1000 * high))}) of units whole`
  }
  await logIn(page, demo, demo.tokens.steward)
  const card = page.getByRole('region', { name: 'Bounds' })
  const file = card.getByLabel('Report that an analyst bought')
  const open = (text: string | object) => file.setInputFiles({ name: 'r.json', mimeType: 'application/json',
    buffer: Buffer.from(typeof text === 'string' ? text : JSON.stringify(text)) })
  await expect(card.getByRole('status')).toBeVisible()
  const asked: string[] = []
  page.on('request', r => { if (r.method() !== 'GET' || r.url().length > 200) asked.push(r.url()) }) // the page itself may still be loading
  await open(text)
  await expect(card.getByLabel('Table')).toHaveValue('visits')
  await expect(card).toContainText('Bought for ε 2.5: what bounds of visits keep, with groups by region.')
  expect(asked).toEqual([]) // the file is read here

  const rows = card.getByRole('slider', { name: /^Rows of one unit in a group/ })
  const groups = card.getByRole('slider', { name: /^Groups of one unit/ })
  const total = card.getByRole('slider', { name: /^Rows of one unit in all groups together/ })
  await expect(rows).toHaveAttribute('aria-valuetext', `5, ${said('max_rows', 5)}`)
  await rows.focus()
  await page.keyboard.press('ArrowRight')
  await page.keyboard.press('ArrowRight')
  await expect(rows).toHaveAttribute('aria-valuetext', `7, ${said('max_rows', 6)}`) // the report has 6 and 9
  const noise = (rows: number) => `${Math.ceil(rows * 3 * Math.log(20) / 0.1).toLocaleString('en')}`
  await expect(card).toContainText(`${said('max_rows', 6)}, at ±\u00a0${noise(7)} a count`)
  await expect(card.getByRole('status')).toContainText(`±\u00a0${noise(7)} at`)
  await groups.fill('2')
  await expect(groups).toHaveAttribute('aria-valuetext', `2, ${said('max_groups', 2)}`)
  await total.fill('4')
  await expect(total).toHaveAttribute('aria-valuetext', `4, ${said('max_rows_total', 4)}`)
  await expect(card.getByRole('status')).toContainText(`±\u00a0${Math.ceil(4 * Math.log(20) / 0.1)} at`)
  await expect(card.getByRole('listitem')).toContainText(`the most ${said('most', 500)}`)
  const marks = await card.locator('#marks-max_rows option').evaluateAll(list => list.map(o => Number((o as HTMLOptionElement).value)))
  expect(marks).toEqual(kept('max_rows').map(k => k.bound).filter(b => b <= Math.max(...marks)))
  expect(marks).toContain(42)
  await everywhere(page, 'Bounds')

  const hostile = '<img src=x onerror=alert(1)>'
  await open({ ...bought, by: [hostile], histograms: [...bought.histograms, { bounds: 'most', column: hostile, kept: [] }] })
  await expect(card).toContainText(`with groups by ${hostile}`)
  const first = bought.histograms[0]
  const with1 = (more: object) => ({ ...bought, histograms: [{ ...first, kept: [{ ...first.kept[0], ...more }] }] })
  for (const [file, why] of [
    ['{', 'it is not JSON'], ['[]', 'it is not an object'], ['{}', 'format is not noisegate bounds/1'], ['['.repeat(200_000), 'it is not JSON'],
    [{ ...bought, table: hostile }, `it is of public.${hostile} of census, which is no private table here`],
    [{ ...bought, dataset: 'other' }, 'visits of other'], [{ ...bought, epsilon: 2.5 }, 'epsilon is not a decimal'],
    [{ ...bought, table: 'x'.repeat(201) }, 'table is not a text'], [{ ...bought, histograms: {} }, 'histograms is not a list'],
    [{ ...bought, histograms: [first, first] }, 'histograms[1] is not the only one of its kind'],
    [{ ...bought, histograms: [{ ...first, bounds: '__proto__' }] }, 'histograms[0].bounds is not one of max_rows'],
    [{ ...bought, histograms: [{ ...first, kept: Array(1001).fill(first.kept[0]) }] }, 'histograms[0].kept is not a list of at most 1000'],
    [with1({ bound: '1' }), 'histograms[0].kept[0].bound is not a number'], [with1({ share: 1.1 }), 'kept[0].share is not a number from 0 to 1'],
    [with1({ low: 1, share: 0.5 }), 'kept[0].low is not a number'], [with1({ bound: 0 }), 'kept[0].bound is not a number from 1'],
    [text + ' '.repeat(10 << 20), 'it has more than 1 MiB'],
  ] as const) {
    await open(file)
    await expect(card.getByRole('alert')).toContainText(why)
    await expect(rows).not.toHaveAttribute('aria-valuetext')
  }
  await expect(card.locator('img')).toHaveCount(0)
})

test('a policy is checked while it is typed, compared, applied, and its text is text', async ({ page, demo, request }) => {
  page.on('dialog', () => { throw new Error('a script ran') })
  await logIn(page, demo, demo.tokens.steward)
  const policy = page.getByRole('region', { name: 'Policy', exact: true })
  await policy.getByRole('button', { name: 'Edit' }).click()
  const box = policy.getByLabel(/^The policy as YAML/)
  const text = await box.inputValue()
  const apply = policy.getByRole('button', { name: 'Apply' })
  await box.fill(text.replace('unit:', 'unitt:') + '\n"<img src=x onerror=alert(1)>": "</textarea><script>alert(2)</script>"\n')
  await expect(policy.getByText('It cannot be applied')).toBeVisible()
  await policy.getByRole('button', { name: /^Line \d+$/ }).first().click()
  expect(await box.evaluate((b: HTMLTextAreaElement) => b.value.slice(b.selectionStart, b.selectionEnd).length)).toBeGreaterThan(0)
  await expect(policy.getByRole('region', { name: 'Before and after' })).toContainText('+ "<img src=x onerror=alert(1)>"')
  expect(await page.locator('main img, main script').count()).toBe(0)
  await policy.getByLabel('I have read what it changes').check()
  await expect(apply).toBeDisabled()
  await accessible(page)

  await box.fill('# checked by sam\n' + text) // a comment means nothing
  await expect(policy.getByText('It is what is in force.')).toBeVisible()
  await policy.getByLabel('I have read what it changes').check()
  await expect(apply).toBeDisabled()
  await box.fill(text.replace('capital_loss:   {bounds: [0, 4356]}', 'capital_loss:   {bounds: [0, 4000]}'))
  await policy.getByLabel('I have read what it changes').check()
  await expect(policy.getByRole('region', { name: 'Before and after' })).toContainText('+       capital_loss:   {bounds: [0, 4000]}')
  await expect(policy.getByText('It can be applied.')).toBeVisible()
  if (process.env.SCREENSHOTS) await policy.screenshot({ path: `${process.env.SCREENSHOTS}/Policy-1280.png` })
  await changePolicy(request, demo, t => t.replace('capital_gain:   {bounds: [0, 99999]}', 'capital_gain:   {bounds: [0, 90000]}'))
  await apply.click()
  await expect(policy.getByRole('alert')).toContainText(/version/) // policy/conflict: nothing is undone unseen
  await policy.getByRole('button', { name: 'Leave it as it is' }).click()
  await page.reload()
  await policy.getByRole('button', { name: 'Edit' }).click()
  await expect(box).toHaveValue(/90000/)
  await box.fill((await box.inputValue()).replace('[0, 4356]', '[0, 4000]'))
  await policy.getByLabel('I have read what it changes').check()
  await apply.click()
  await expect(policy.getByRole('region', { name: 'Text of the policy' })).toContainText('[0, 4000]')
})

test('an empty gateway leads a steward to the first question, by the keyboard alone', async ({ page, demo }) => {
  const gateway = await startGateway(demo, 'console_first', { auth: `{issuer: noisegate-demo, audience: noisegate, keys: {hs256_file: ${demo.key}}}` })
  try {
    const empty = { ...demo, http: gateway.http }
    await logIn(page, empty, demo.token('sam', ['steward']))
    const steps = page.getByRole('region', { name: 'First steps' })
    await expect(steps).toContainText('Nobody can ask about census yet')
    await expect(steps).toContainText('people.person_id')
    await steps.getByLabel('Column').fill('people.nobody')
    await steps.getByLabel('Column').press('Enter')
    await expect(steps.getByRole('alert')).toContainText('has no column nobody')
    await steps.getByLabel('Column').fill('people.person_id')
    await steps.getByLabel('Column').press('Enter')
    const first = page.getByRole('region', { name: 'Policy', exact: true })
    await expect(first).toContainText('4 blanks are to be filled in')
    await expect(first).toContainText('It cannot be applied')
    await everywhere(page, 'First')
    const apply = first.getByRole('button', { name: 'Apply' })
    for (const value of ['5', '3', '0.5', '0.05']) {
      await first.getByRole('button', { name: 'Next blank' }).press('Enter')
      await expect(first.getByLabel(/^The policy as YAML/)).toBeFocused()
      await page.keyboard.insertText(value)
      await expect(apply).toBeDisabled()
    }
    await expect(first).toContainText('It can be applied.')
    await first.getByLabel('I have read what it changes').press('Space')
    await apply.press('Enter')
    const question = page.getByRole('region', { name: 'First question' })
    await expect(question).toContainText('SELECT count(*) AS n FROM people')
    await expect(question).toBeFocused()
    await expect(question).toBeInViewport()
    await expect(page.getByRole('region', { name: 'Accounts', exact: true })).toBeVisible()
    await accessible(page)
    if (process.env.SCREENSHOTS) await page.screenshot({ path: `${process.env.SCREENSHOTS}/FirstQuestion-1280.png` })
    await page.getByRole('button', { name: 'Log out' }).press('Enter')
    await page.getByLabel('Your token').fill(demo.token('ana'))
    await page.getByLabel('Your token').press('Enter')
    await page.getByRole('button', { name: /^Run for/ }).press('Enter')
    await expect(page.getByRole('region', { name: 'Answer', exact: true })).toContainText('Spent')
  } finally {
    await gateway.stop()
  }
})

test('questions stay side by side, as text alone', async ({ page, demo }) => {
  await logIn(page, demo, demo.token('tabs'))
  await type(page, 'SELECT count(*) FROM people')
  const questions = page.getByRole('group', { name: 'Questions' })
  await questions.getByRole('button', { name: 'New question' }).click()
  const editor = page.getByRole('textbox', { name: 'Question in SQL' })
  await expect(editor).toHaveText('SELECT ...') // the placeholder
  await editor.press('Control+A')
  await page.keyboard.insertText('SELECT avg(age) FROM people')
  await questions.getByRole('button', { name: 'SELECT count(*) FROM people' }).click()
  await expect(editor).toHaveText('SELECT count(*) FROM people')
  await accessible(page)
  await page.reload()
  await questions.getByRole('button', { name: 'SELECT avg(age) FROM people' }).click()
  await expect(editor).toHaveText('SELECT avg(age) FROM people')
  const kept = await page.evaluate(() => JSON.stringify(localStorage))
  expect(kept).toContain('avg(age)')
  expect(kept).not.toContain('eyJ')
  await questions.getByRole('button', { name: 'Close this one' }).click()
  await expect(editor).toHaveText('SELECT count(*) FROM people')
  await page.getByRole('button', { name: 'Log out' }).click()
  await page.getByLabel('Your token').fill(demo.token('another'))
  await page.getByRole('button', { name: 'Log in' }).click()
  await expect(editor).toHaveText(/SELECT/)
  await expect(editor).not.toHaveText('SELECT count(*) FROM people') // what one person typed is not shown to another
})

test('a figure is taken away as SVG and PNG, and drawn as one likes', async ({ page, demo }) => {
  await answered(page, demo, 'bigint', [[1, 40], [2, 50], [3, 45]])
  const answer = page.getByRole('region', { name: 'Answer', exact: true })
  await expect(answer.locator('svg .point')).toHaveCount(3)
  await expect(answer.locator('svg .line')).toHaveCount(0)
  await answer.getByRole('button', { name: 'Line', exact: true }).click()
  await expect(answer.locator('svg .line')).toHaveCount(1)
  const taken = async (name: string) => {
    const event = page.waitForEvent('download')
    await answer.getByRole('button', { name: `Download ${name}` }).click()
    const parts: Buffer[] = []
    for await (const part of await (await event).createReadStream()) parts.push(part as Buffer)
    return Buffer.concat(parts)
  }
  const svg = (await taken('SVG')).toString()
  expect(svg).toMatch(/^<svg[^>]*xmlns="http:\/\/www.w3.org\/2000\/svg"/)
  expect(svg).toContain('stroke="rgb(')
  expect(svg).not.toContain('class=')
  const png = await taken('PNG')
  expect(png.subarray(1, 4).toString()).toBe('PNG')
  expect(png.length).toBeGreaterThan(2000)
  await answer.getByRole('button', { name: 'Bars', exact: true }).click()
  await expect(answer.locator('svg .bar')).toHaveCount(3)
  await accessible(page)
})

test('the history goes on beyond its first page', async ({ page, demo }) => {
  const release = (i: number) => ({ release_id: `r${i}`, dataset: 'census', at: '2026-11-01T00:00:00Z', cost: { epsilon: '0.1', rho: null, delta: '0' },
    request: { dataset: 'census', sql: `SELECT ${i}` } })
  await page.route('**/v1/releases*', route => {
    const from = Number(new URL(route.request().url()).searchParams.get('cursor') ?? 0)
    return route.fulfill({ json: { releases: Array.from({ length: 50 }, (_, i) => release(from + i)), ...from < 100 && { next_cursor: String(from + 50) } } })
  })
  await logIn(page, demo, demo.token('historian'))
  const history = page.getByRole('region', { name: 'History' })
  await expect(history.getByRole('listitem').filter({ hasText: 'SELECT' })).toHaveCount(50)
  for (const n of [100, 150]) {
    await history.getByRole('button', { name: 'Show older' }).click()
    await expect(history.getByRole('listitem').filter({ hasText: 'SELECT' })).toHaveCount(n)
  }
  await expect(history.getByRole('button', { name: 'Show older' })).toHaveCount(0)
})

test('names of queries come from a column of a file', async ({ page, demo }) => {
  await logIn(page, demo, demo.tokens.ml)
  await page.getByRole('link', { name: 'Labels' }).click()
  await page.getByRole('button', { name: 'digits' }).click()
  await page.getByLabel('File of names').setInputFiles({ name: 'ids.csv', mimeType: 'text/csv', buffer: Buffer.from('note,id\r\n"a, b",7\r\n"say ""x""",8\r\n') })
  const names = page.getByLabel('Queries, by name')
  await expect(names).toHaveValue('a, b\nsay "x"') // a name is a line, whatever is in it
  const asked = page.waitForRequest('**/labels/estimate')
  await page.getByLabel('σ').fill('40')
  expect((await asked).postDataJSON().queries).toEqual(['a, b', 'say "x"'])
  await page.getByLabel('Column with the names').selectOption('1')
  await expect(names).toHaveValue('7\n8')
  await page.getByLabel('the first line is a heading').uncheck()
  await expect(names).toHaveValue('id\n7\n8')
  await accessible(page)
  await page.getByLabel('File of names').setInputFiles({ name: 'ids.txt', mimeType: 'text/plain', buffer: Buffer.from('1\n2\n') })
  await expect(names).toHaveValue('1\n2\n')
  await expect(page.getByLabel('Column with the names')).toHaveCount(0)
})

test('a token that expires amid the work leads to the login, and what was typed stays', async ({ page, demo }) => {
  await logIn(page, demo, demo.token('short', ['analyst'], -35)) // and 60 s more, for clocks that differ
  await type(page, bySex)
  const button = page.getByRole('button', run)
  await expect(button).toHaveText('Run for ε 0.1')
  await page.waitForTimeout(26_000)
  await button.click()
  await expect(page.getByLabel('Your token')).toBeVisible()
  await expect(page.getByRole('alert')).toContainText('the token expired')
  expect(await page.evaluate(() => sessionStorage.length)).toBe(0)
  await page.getByLabel('Your token').fill(demo.token('short'))
  await page.getByRole('button', { name: 'Log in' }).click()
  await expect(page.getByRole('textbox', { name: 'Question in SQL' })).toHaveText(bySex)
})

test('who asks faster than the account lets through is told when to come again, and then answered', async ({ page, demo, request }) => {
  const set = await request.put(`${demo.http}/v1/datasets/census/budgets/${encodeURIComponent('analyst:busy')}`, {
    headers: { Authorization: `Bearer ${demo.tokens.steward}` },
    data: { form: 'approx', epsilon: '3', delta: '1e-7', rate: { epsilon: '0.1', per: '10s' } },
  })
  expect(set.status()).toBe(200)
  await logIn(page, demo, demo.token('busy'))
  const button = page.getByRole('button', run)
  const answer = page.getByRole('region', { name: 'Answer', exact: true })
  await type(page, bySex)
  await expect(button).toHaveText('Run for ε 0.1')
  await button.click()
  await expect(answer).toContainText('Spent ε 0.1')
  await type(page, 'SELECT race, count(*) AS n FROM people GROUP BY race')
  await expect(button).toHaveText('Run for ε 0.1')
  const refused = page.waitForResponse('**/v1/query')
  await button.click()
  const after = Number((await refused).headers()['retry-after'])
  expect((await refused).status()).toBe(429)
  expect(after).toBeGreaterThan(0)
  expect(after).toBeLessThanOrEqual(10)
  await expect(page.getByRole('alert')).toContainText(/in \d+ s/)
  await accessible(page)
  await page.waitForTimeout(1000 * after + 200)
  await button.click()
  await expect(answer).toContainText('Spent ε 0.1; ε 2.8')
  await expect(page.getByRole('alert')).toHaveCount(0)
})

test('a budget that is used up is refilled by a steward, and the question is asked on', async ({ page, demo, browser, request }) => {
  const token = demo.token('thirsty')
  for (const sql of ['SELECT count(*) FROM people', 'SELECT sum(age) FROM people', 'SELECT avg(age) FROM people']) {
    const paid = await request.post(demo.http + '/v1/query', { headers: { Authorization: `Bearer ${token}` }, data: { dataset: 'census', sql, epsilon: '1' } })
    expect(paid.status()).toBe(200)
  }
  await logIn(page, demo, token)
  await type(page, bySex)
  const button = page.getByRole('button', run)
  await expect(page.getByText('More than what is left of your budget.')).toBeVisible()
  await expect(button).toBeDisabled()
  const steward = await (await browser.newContext()).newPage()
  await logIn(steward, demo, demo.tokens.steward)
  await steward.getByRole('button', { name: 'Refill analyst:thirsty' }).click()
  const change = steward.getByRole('region', { name: 'Change' })
  await change.getByLabel('ε more').fill('0.5')
  await change.getByLabel('Reason').fill('they asked well')
  await change.getByRole('button', { name: 'Confirm: refill' }).click()
  await expect(steward.getByRole('row').filter({ hasText: 'analyst:thirsty' }).first()).toContainText('refilled 1 times')
  await steward.close()
  await page.evaluate(() => document.dispatchEvent(new Event('visibilitychange'))) // the analyst comes back to the tab
  await expect(button).toHaveText('Run for ε 0.1')
  await expect(button).toBeEnabled()
  await button.click()
  await expect(page.getByRole('region', { name: 'Answer', exact: true })).toContainText('Spent ε 0.1; ε 0.4')
})

test('a page that is looked at again asks for the price again', async ({ page, demo }) => {
  await logIn(page, demo, demo.token('back'))
  await type(page, bySex)
  await expect(page.getByRole('button', run)).toHaveText('Run for ε 0.1')
  const again = page.waitForRequest('**/v1/query/estimate')
  await page.evaluate(() => document.dispatchEvent(new Event('visibilitychange')))
  await again
  await expect(page.getByRole('button', run)).toHaveText('Run for ε 0.1')
})

test('a form changes the text of a policy, and the text the form, with every comment where it was', async ({ page, demo }) => {
  page.on('dialog', () => { throw new Error('a script ran') })
  await logIn(page, demo, demo.tokens.steward)
  const policy = page.getByRole('region', { name: 'Policy', exact: true })
  expect(await page.evaluate(() => performance.getEntriesByType('resource').filter(e => e.name.endsWith('edits.js')).length)).toBe(0) // only who edits needs it
  await policy.getByRole('button', { name: 'Edit' }).press('Enter')
  const box = policy.getByLabel(/^The policy as YAML/)
  const form = policy.getByRole('group', { name: 'The policy as a form' })
  const text = await box.inputValue()
  await expect(form.getByText('What people change most.')).toBeVisible()

  const visits = form.locator('details').filter({ hasText: 'visits' }).first()
  await visits.locator('summary').focus()
  await page.keyboard.press('Enter')
  const rows = form.getByLabel('Rows of one unit in a group: visits', { exact: true })
  await expect(rows).toHaveValue('5')
  await expect(visits).toContainText('± 449') // a count by 12 keys at ε 0.1
  await page.keyboard.press('Tab')
  await page.keyboard.press('Tab')
  await expect(rows).toBeFocused()
  await rows.press('End')
  await page.keyboard.press('Backspace')
  await page.keyboard.type('4')
  expect(await box.inputValue()).toBe(text.replace('    max_rows: 5     ', '    max_rows: 4     '))
  await expect(visits).toContainText(/± 3(59|60)/) // of 4 rows in each of 3 groups, by the gateway's word
  await form.getByLabel('Rows of one unit in a group: visits, slider').press('ArrowRight')
  expect(await box.inputValue()).toBe(text)
  await expect(policy.getByText('It is what is in force.')).toBeVisible()

  await box.fill(text.replace('max_groups: 3', 'max_groups: 2'))
  await expect(form.getByLabel('Groups of one unit: visits', { exact: true })).toHaveValue('2')
  await box.fill(text)
  await form.getByLabel('Most of visits.amount').fill('400')
  await expect(form.getByRole('row', { name: /amount/ })).toContainText(/± [\d,]+/)
  expect(await box.inputValue()).toBe(text.replace('amount:    {bounds: [0, 500], step: 0.01}', 'amount:    {bounds: [0, 400], step: 0.01}'))
  await form.getByLabel('Rows of one unit in all groups together: visits').fill('12')
  expect((await box.inputValue()).replace('\n    max_rows_total: 12', '').replace('[0, 400]', '[0, 500]')).toBe(text)
  await form.getByLabel('Rows of one unit in all groups together: visits').fill('')
  expect(await box.inputValue()).toContain('max_rows_total: 12') // somebody may be about to type another one
  await form.getByLabel('ε: all together', { exact: true }).fill('19')
  await form.getByLabel('Show visits.day to analysts').uncheck()
  await expect(form).toContainText('does not exist for analysts')
  await form.getByLabel('Show visits.day to analysts').check()
  const changed = text.replace('[0, 500]', '[0, 400]').replace('epsilon: 20', 'epsilon: 19')
  expect(await box.inputValue()).toBe(changed)
  await expect(policy.getByText('It can be applied.')).toBeVisible()
  await expect(policy.getByRole('region', { name: 'Before and after' })).toContainText('+   - {dataset: true, form: approx, epsilon: 19, delta: 1e-6, min_epsilon: 0.01}')
  await policy.getByLabel('I have read what it changes').check()
  await form.getByLabel('Most of visits.amount').fill('300') // another text is read again
  await expect(policy.getByLabel('I have read what it changes')).not.toBeChecked()
  await form.getByLabel('Most of visits.amount').fill('400')
  await form.getByLabel('Bounds for another column of visits').fill('nights')
  await visits.getByRole('button', { name: 'Add' }).press('Enter')
  expect(await box.inputValue()).toContain('\n      nights: {bounds: [___, ___]}\n')
  await expect(policy.getByText('2 blanks are to be filled in')).toBeVisible()
  await form.getByLabel('Least of visits.nights').fill('0')
  await form.getByLabel('Most of visits.nights').fill('30')
  expect(await box.inputValue()).toContain('\n      nights: {bounds: [0, 30]}\n')
  await expect(policy.getByText('It cannot be applied')).toBeVisible() // there is no such column
  await box.fill(changed)
  if (process.env.SCREENSHOTS) await policy.screenshot({ path: `${process.env.SCREENSHOTS}/Form-1280.png` })
  await everywhere(page, 'Form')

  const hostile = '7, x: "<img src=x onerror=alert(1)>"}'
  await rows.fill(hostile)
  await expect(rows).toHaveValue(hostile)
  await expect(policy.getByText('It cannot be applied')).toBeVisible()
  await box.fill(changed.replace('  visits:', '  "<img src=x onerror=alert(2)>": {unit: {column: a}}\n  visits:'))
  await expect(form).toContainText('<img src=x onerror=alert(2)>')
  expect(await page.locator('main img, main script').count()).toBe(0)
  await box.fill(changed.replace('tables:', 'tables: ['))
  await expect(form).toContainText('the form waits until it is')
  await box.fill(changed.replace('max_rows: 5 ', 'max_rows: &n 5 ').replace('max_groups: 3', 'max_groups: *n'))
  await expect(form).toContainText('written elsewhere in the text')
  await rows.fill('51')
  await expect(form.getByRole('status').first()).toContainText('change it in the text')

  await box.fill(changed)
  await policy.getByLabel('I have read what it changes').check()
  await policy.getByRole('button', { name: 'Apply' }).click()
  await expect(policy.getByRole('region', { name: 'Text of the policy' })).toContainText('[0, 400]')
  await expect(policy.getByRole('region', { name: 'Text of the policy' })).toContainText('# one row is one person')
})

test('a steward sees prepared copies, makes a new version, and one of another policy', async ({ page, demo, request }) => {
  await logIn(page, demo, demo.tokens.steward)
  const copies = page.getByRole('region', { name: 'Prepared copies' })
  const visits = copies.getByRole('row', { name: /^visits/ })
  await expect(visits).toContainText('at most 8 rows of one unit')
  await expect(visits).toContainText(/version \d+ as of/)
  const number = async () => Number(/version (\d+) as of/.exec(await visits.innerText())![1])
  const before = await number()
  await copies.getByRole('button', { name: 'Prepare visits' }).press('Enter')
  await expect(copies.getByRole('status')).toContainText(`visits: done, version ${before + 1}`)
  await expect(visits).toContainText(`version ${before + 1}, where it errs no more than the table`)
  await everywhere(page, 'Prepared')
  await changePolicy(request, demo, t => t.replace('prepare: {max_rows: 8}', 'prepare: {max_rows: 7}'))
  await page.reload()
  await expect(visits).toContainText('at most 7 rows of one unit')
  await expect(visits).toContainText('made for another policy')
  await expect(visits).toContainText('the table')
  await changePolicy(request, demo, t => t.replace('prepare: {max_rows: 7}', 'prepare: {max_rows: 8}'))
  await page.reload()
  await expect(visits).toContainText('where it errs no more than the table')
  await expect(visits).not.toContainText('made for another policy')
  const { entries } = await (await request.get(`${demo.http}/v1/audit?dataset=census`, { headers: { Authorization: `Bearer ${demo.tokens.steward}` } })).json()
  expect(entries.filter((e: { kind: string; subject: string }) => e.kind === 'settle' && e.subject === 'sam')).toEqual([]) // it spends nothing
})

test('a limit of an older policy is said to be one', async ({ page, demo, request }) => {
  const headers = { Authorization: `Bearer ${demo.token('older')}` }
  const ask = (epsilon: string) => request.post(demo.http + '/v1/query', { headers, data: { dataset: 'census', sql: 'SELECT count(*) FROM people', epsilon } })
  expect((await ask('0.11')).status()).toBe(200)
  await changePolicy(request, demo, t => t.replace('max_failures: 6\n', '') === t ? 'max_failures: 6\n' + t : t)
  await logIn(page, demo, demo.tokens.steward)
  const older = page.getByRole('region', { name: 'Accounts', exact: true }).getByRole('row').filter({ hasText: 'analyst:older' })
  await expect(older).toContainText('of an older policy')
  expect((await ask('0.12')).status()).toBe(200)
  await page.reload()
  await expect(older).toBeVisible()
  await expect(older).not.toContainText('of an older policy')
  await changePolicy(request, demo, t => t.replace('max_failures: 6\n', ''))
})
