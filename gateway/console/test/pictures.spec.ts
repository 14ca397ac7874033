// The pictures of docs/console.md: PICTURES=../../docs npx playwright test pictures

import { expect } from '@playwright/test'
import { logIn, test, type } from './demo'

const dir = process.env.PICTURES

test('pictures', async ({ page, demo, request }) => {
  test.skip(!dir, 'they are taken when PICTURES names a directory')
  const ask = (who: string, sql: string, epsilon: string) => request.post(demo.http + '/v1/query', {
    headers: { Authorization: `Bearer ${demo.token(who)}` }, data: { dataset: 'census', sql, epsilon },
  })
  await page.setViewportSize({ width: 1100, height: 860 })
  await logIn(page, demo, demo.tokens.analyst)
  await type(page, 'SELECT education, count(*) AS n FROM people\nGROUP BY education\nORDER BY n DESC')
  await page.getByLabel('ε', { exact: true }).fill('0.5')
  await page.getByRole('button', { name: /^Run for/ }).click()
  await expect(page.getByRole('button', { name: 'Run, free' })).toBeEnabled()
  await page.screenshot({ path: `${dir}/console-ask.png` })

  await page.setViewportSize({ width: 360, height: 560 })
  await page.emulateMedia({ colorScheme: 'dark' })
  await page.getByRole('link', { name: 'Budget' }).click()
  await expect(page.getByRole('meter')).toBeVisible()
  await page.screenshot({ path: `${dir}/console-budget.png` })

  await page.setViewportSize({ width: 1100, height: 860 })
  await page.emulateMedia({ colorScheme: 'light' })
  for (const [who, sql] of [['ana', 'SELECT count(*) FROM people'], ['bob', 'SELECT sex, count(*) FROM people GROUP BY sex']]) {
    expect((await ask(who, sql, '0.8')).status()).toBe(200)
  }
  await page.getByRole('button', { name: 'Log out' }).click()
  await logIn(page, demo, demo.tokens.steward)
  await expect(page.getByRole('button', { name: 'Freeze analyst:bob' })).toBeVisible()
  await expect(page.locator('svg .forecast').first()).toBeAttached()
  await page.screenshot({ path: `${dir}/console-steward.png` })

  const policy = page.getByRole('region', { name: 'Policy', exact: true })
  await policy.getByRole('button', { name: 'Edit' }).click()
  await policy.locator('summary').filter({ hasText: 'visits' }).click()
  await policy.getByLabel('Rows of one unit in a group: visits', { exact: true }).fill('6')
  await expect(policy.getByText('It can be applied.')).toBeVisible()
  await policy.getByLabel(/^The policy as YAML/).evaluate(box => { box.scrollTop = 500 })
  await policy.getByRole('group', { name: 'The policy as a form' }).evaluate(form => { form.scrollTop = 90 })
  await policy.screenshot({ path: `${dir}/console-policy.png` })
})
