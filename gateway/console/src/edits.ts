// Changing single values in the text of a policy, so that all that is not changed stays as it is written: comments, order, spaces. It is
// built apart (dist/edits.js), since only who edits a policy needs it.

import { isAlias, isMap, isScalar, isSeq, parseDocument, type Pair, type YAMLMap } from 'yaml'

export type Path = (string | number)[]
export interface Edited { text: string; refused?: string }

// Policy is a text that was read. An alias is never followed: what stands in an anchor counts elsewhere too, and is changed in the text.
export class Policy {
  readonly root: unknown
  readonly broken: number // the line of what is no YAML; 0: it is

  constructor(readonly text: string) {
    const parsed = parseDocument(text, { prettyErrors: false, stringKeys: true, uniqueKeys: true })
    this.root = parsed.contents
    const wrong = parsed.errors[0]
    this.broken = wrong ? text.slice(0, wrong.pos[0]).split('\n').length : isMap(this.root) ? 0 : 1
  }

  // at is the node of a path; undefined: there is none.
  private at(path: Path): unknown {
    let node = this.root
    for (const step of path) node = isMap(node) ? pairOf(node, step)?.value : isSeq(node) && typeof step === 'number' ? node.items[step] : undefined
    return node
  }

  // value is what stands there as it is written, without its quotes; '' where nothing does.
  value(path: Path): string {
    const node = this.at(path)
    return isScalar(node) ? node.source ?? String(node.value ?? '') : ''
  }

  has(path: Path): boolean { return this.at(path) != null }

  // alias reports whether a path, or what is around it, is written elsewhere.
  alias(path: Path): boolean { return path.some((_, i) => isAlias(this.at(path.slice(0, i + 1)))) }

  keys(path: Path): string[] {
    const node = this.at(path)
    return isMap(node) ? node.items.map(keyOf) : []
  }

  size(path: Path): number {
    const node = this.at(path)
    return isSeq(node) ? node.items.length : 0
  }

  // set writes a value, which is YAML, or takes it away ('').
  set(path: Path, yaml: string): Edited {
    const refused = { text: this.text, refused: 'This one is written in a way that the form leaves alone: change it in the text.' }
    if (this.broken || this.alias(path)) return refused
    const text = yaml ? this.written(path, yaml) : this.taken(path)
    if (text === null) return refused
    const after = new Policy(text) // whatever was done to the text, nothing else may have changed
    const there = yaml ? canon(parseDocument(yaml).contents) : undefined
    const is = after.has(path) ? canon(after.at(path)) : undefined
    return !after.broken && is === there && canon(without(this.root, path)) === canon(without(after.root, path)) ? { text } : refused
  }

  private written(path: Path, yaml: string): string | null {
    const range = rangeOf(this.at(path))
    if (range) return splice(this.text, range[0], range[1], this.text[range[0] - 1] === ':' ? ' ' + yaml : yaml)
    const key = path.at(-1)!
    if (typeof key === 'number' || path.length < 2 && !isMap(this.root)) return null
    const around = path.slice(0, -1)
    const map = this.at(around)
    if (map == null || isScalar(map) && map.value === null) return this.written(around, `{${scalar(key)}: ${yaml}}`)
    const of = rangeOf(map)
    if (!isMap(map) || !of) return null
    const line = `${scalar(key)}: ${yaml}`
    const first = map.items[0]
    if (map.flow) {
      const last = rangeOf(map.items.at(-1)?.value) ?? rangeOf(map.items.at(-1)?.key)
      return last ? splice(this.text, last[1], last[1], ', ' + line) : splice(this.text, of[0], of[1], `{${line}}`)
    }
    const start = rangeOf(first?.key)?.[0]
    if (start === undefined) return null
    const indent = ' '.repeat(start - (this.text.lastIndexOf('\n', start - 1) + 1))
    const end = rangeOf(first.value)
    const block = isMap(first.value) && !first.value.flow || isSeq(first.value) && !first.value.flow
    if (!end || block) return splice(this.text, start, start, `${line}\n${indent}`)
    const at = lineEnd(this.text, end[1]) // behind the first line
    return splice(this.text, at, at, `\n${indent}${line}`)
  }

  private taken(path: Path): string | null {
    const map = this.at(path.slice(0, -1))
    if (!isMap(map)) return this.text
    const i = map.items.findIndex(p => keyOf(p) === path.at(-1))
    if (i < 0) return this.text
    const [start, end] = [rangeOf(map.items[i].key)?.[0], (rangeOf(map.items[i].value) ?? rangeOf(map.items[i].key))?.[1]]
    if (start === undefined || end === undefined) return null
    if (!map.flow) return splice(this.text, this.text.lastIndexOf('\n', start - 1) + 1, lineEnd(this.text, end) + 1, '')
    const next = rangeOf(map.items[i + 1]?.key)?.[0]
    if (next !== undefined) return splice(this.text, start, next, '')
    const before = i > 0 ? (rangeOf(map.items[i - 1].value) ?? rangeOf(map.items[i - 1].key))?.[1] : start
    return before === undefined ? null : splice(this.text, before, end, '')
  }
}

// scalar is a text as YAML has it on one line: plain where nothing else can be read in it.
export function scalar(text: string): string {
  const plain = /^[+-]?\d[\w.+-]*$/.test(text) || /^[A-Za-z_][\w.-]*$/.test(text) && !/^(true|false|null|yes|no|on|off|y|n)$/i.test(text)
  return plain ? text : JSON.stringify(text)
}

const splice = (text: string, from: number, to: number, by: string) => text.slice(0, from) + by + text.slice(to)
const keyOf = (p: Pair) => isScalar(p.key) ? String(p.key.value) : ''
const pairOf = (map: YAMLMap, key: string | number) => map.items.find(p => keyOf(p) === String(key))
const rangeOf = (node: unknown) => (node as { range?: [number, number, number] | null } | null | undefined)?.range ?? undefined

function lineEnd(text: string, from: number): number {
  const at = text.indexOf('\n', from)
  return at < 0 ? text.length : text[at - 1] === '\r' ? at - 1 : at
}

// Canon is a document as data, by which two are compared. Aliases stay names.
type Canon = string | [string, Canon][] | Canon[]

const canon = (node: unknown): string => JSON.stringify(node instanceof Without ? node.data : data(node))

class Without { constructor(readonly data: Canon | undefined) {} }

// without is a document without what stands at a path, and without maps around it that are empty then.
const without = (node: unknown, path: Path) => new Without(data(node, path))

function data(node: unknown, skip?: Path): Canon | undefined {
  if (skip?.length === 0) return undefined
  const anchor = (node as { anchor?: string } | null)?.anchor ?? ''
  if (isMap(node)) {
    const all = node.items.map(p => [keyOf(p), data(p.value, skip && String(skip[0]) === keyOf(p) ? skip.slice(1) : undefined)])
    const kept = all.filter(([, v]) => v !== undefined) as [string, Canon][]
    return skip && kept.length === 0 ? undefined : [['&' + anchor, 'map'], ...kept]
  }
  if (isSeq(node)) return ['&' + anchor, ...node.items.map((v, i) => data(v, skip && skip[0] === i ? skip.slice(1) : undefined) ?? '')]
  if (isAlias(node)) return '*' + node.source
  if (isScalar(node) && node.value === null && skip) return undefined
  if (isScalar(node)) return `&${anchor} ${typeof node.value} ${String(node.value)}`
  return 'null'
}
