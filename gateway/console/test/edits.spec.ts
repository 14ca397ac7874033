// A change of one value in the text of a policy changes that value, and leaves everything else as it is written.

import { expect, test } from '@playwright/test'
import { readFileSync } from 'node:fs'
import { parseDocument, visit, isMap, isScalar } from 'yaml'
import { Policy, scalar, type Path } from '../src/edits'

const demo = readFileSync('../../cmd/noisegate/demo_policy.yaml', 'utf8')
const set = (text: string, path: Path, value: string) => new Policy(text).set(path, value)
const lines = (a: string, b: string) => a.split('\n').filter((l, i) => l !== b.split('\n')[i]).length

// scalars are the paths of all scalars of a text.
function scalars(text: string): Path[] {
  const all: Path[] = []
  visit(parseDocument(text), { Scalar(key, _, above) {
    if (key === 'key') return
    const path: Path = []
    above.forEach((node, i) => {
      if (isScalar((node as any).key)) path.push(String((node as any).key.value))
      else if (!isMap(node) && 'items' in node) path.push(i + 1 < above.length ? (node as any).items.indexOf(above[i + 1]) : key as number)
    })
    all.push(path)
  } })
  return all
}

test('each value of a policy is changed alone, and goes back to what it was', () => {
  for (const end of ['\n', '\r\n']) {
    const text = demo.replaceAll('\n', end)
    const paths = scalars(text)
    expect(paths.length).toBeGreaterThan(80)
    for (const path of paths) {
      const before = new Policy(text).value(path)
      const there = set(text, path, '7654321')
      expect(there.refused, path.join('.')).toBeUndefined()
      expect(lines(text, there.text)).toBe(1)
      expect(new Policy(there.text).value(path)).toBe('7654321')
      if (scalar(before) === before) expect(set(there.text, path, before)).toEqual({ text })
    }
  }
})

test('a value that is not there is added, and taken out again', () => {
  for (const [path, line] of [
    [['tables', 'visits', 'max_rows_total'], '    max_rows_total: 9'], [['tables', 'visits', 'require_prepared'], '    require_prepared: 9'],
    [['data_version'], 'data_version: 9'], [['tables', 'people', 'prepare', 'max_rows'], '    prepare: {max_rows: 9}'],
  ] as [Path, string][]) {
    const there = set(demo, path, '9')
    expect(there.refused).toBeUndefined()
    expect(there.text.split('\n')).toContain(line)
    expect(there.text.split('\n').filter(l => l !== line).join('\n')).toBe(demo)
    const whole: Path = path.includes('prepare') ? path.slice(0, 3) : path
    expect(set(there.text, whole, '')).toEqual({ text: demo })
  }
  const flow = set(demo, ['budgets', 1, 'min_epsilon'], '0.02')
  expect(flow.text).toContain('default_epsilon: 0.1, default_delta: 1e-9, min_epsilon: 0.02}   # the price')
  expect(set(flow.text, ['budgets', 1, 'min_epsilon'], '')).toEqual({ text: demo })
  expect(set(demo, ['budgets', 1, 'max_epsilon_per_query'], '').text).toContain('epsilon: 3, delta: 1e-7, default_epsilon: 0.1, default_delta: 1e-9}')
  expect(set('tables:\n  a:\n    columns:\n', ['tables', 'a', 'columns', 'x', 'bounds'], '[___, ___]').text).toBe(
    'tables:\n  a:\n    columns: {x: {bounds: [___, ___]}}\n')
  expect(set('budgets:\n- group: x # of all\n  epsilon: 1\n', ['budgets', 0, 'delta'], '1e-6').text).toBe(
    'budgets:\n- group: x # of all\n  delta: 1e-6\n  epsilon: 1\n')
  expect(set('a: {}', ['a', 'b'], '1').text).toBe('a: {b: 1}')
  expect(set('a: {b: 1}', ['a', 'b'], '').text).toBe('a: {}')
  expect(set('a:\nb: 1\n', ['a'], '2').text).toBe('a: 2\nb: 1\n')
})

test('what is written elsewhere, or in a way that cannot be changed alone, is left as it is', () => {
  for (const [text, path] of [
    ['a: &x {b: 1}\nc: *x\n', ['c', 'b']], ['a: *x\n', ['a', 'b']], ['a: &x 1\nc: *x\n', ['a']], ['? [a, b]\n: 1\n', ['a']],
    ['- a\n', ['a']], ['a: [1\n', ['a']], ['a: 1\na: 2\n', ['a']], ['{a: {b: 1 # here\n  }}', ['a', 'c']], ['a', ['a', 'b']], ['', ['a']],
  ] as [string, Path][]) {
    const done = set(text, path, '7')
    if (!done.refused) expect(new Policy(done.text).value(path), text).toBe('7')
    else expect(done.text).toBe(text)
  }
  expect(set('a: &x 1\nc: *x\n', ['a'], '7').refused).toBeDefined()
  expect(set('a: &x {b: 1}\nc: *x\n', ['c', 'b'], '7').refused).toBeDefined()
})

test('a text that somebody types stays one value', () => {
  for (const typed of ['x: 1', '7}', '7, epsilon: 9', '# nothing', '*x', '&x', '!!js', '"', "'", '7\n8', 'null', 'yes', '- 1', '?', '{', '|', '%', '@', ' ', '7:', '‮gnp']) {
    const done = set(demo, ['tables', 'visits', 'max_rows'], scalar(typed))
    expect(done.refused, typed).toBeUndefined()
    expect(lines(demo, done.text)).toBe(1)
    expect(parseDocument(done.text).getIn(['tables', 'visits', 'max_rows'])).toBe(typed)
  }
})
