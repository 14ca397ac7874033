// A question that is taken elsewhere is the same question there: whatever settings it has, the Python asks with them, and psql with them or
// not at all.

import { expect, test } from '@playwright/test'
import { execFileSync } from 'node:child_process'
import { snippets } from '../src/snippets'

const text = (name: string, q: object) => snippets.find(s => s.name === name)!.text(q as never, 'http://gateway')

const questions = [
  { sql: `SELECT 'it''s "\\' AS "😀\u2028"`, dataset: 'census', epsilon: '0.1' },
  { sql: 'SELECT 1', dataset: 'census', prepared: false, rho: '0.1', max_rows: 2, confidence: 0.9 },
  { sql: 'SELECT $1', dataset: 'census', params: [true, false, null, 1.5, 'null', { type: 'date', value: '2024-01-31' }, [[]]] },
  { sql: 'SELECT 1', dataset: 'census', confidence: { level: 0.9, simultaneous: true }, weights: { 'a"b': '2' }, max_error: { n: 5 } },
]

const stub = `
import json, sys, types
class Client:
    def __init__(self, url, dataset): self.dataset = dataset
    def query(self, sql, **settings): return json.dumps({"sql": sql, "dataset": self.dataset, **settings})
sys.modules["noisegate"] = types.SimpleNamespace(Client=Client)
exec(sys.stdin.read())
`

test('Python asks the same question', () => {
  for (const q of questions) {
    expect(JSON.parse(execFileSync('python3', ['-c', stub], { input: text('Python', q), encoding: 'utf8' }))).toEqual(q)
  }
})

test('psql asks the same question, or says what it cannot say', () => {
  expect(questions.map(q => text('psql', q).match(/^# .*|noisegate\.\w+/g))).toEqual([
    ['noisegate.epsilon'],
    ['# psql has no setting for prepared: take curl or Python'],
    ['# psql has no setting for params: take curl or Python'],
    ['# psql has no setting for confidence, weights, max_error: take curl or Python'],
  ])
})
