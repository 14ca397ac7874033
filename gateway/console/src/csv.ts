// An answer as CSV (RFC 4180), with the columns that the gateway gives CSV: n, n_low, n_high.

import { isNoisy } from './format'
import type { Result, Value } from './api'

export function csv(result: Result): string {
  const header = result.columns.flatMap(c => isNoisy(c) ? [c.name, `${c.name}_low`, `${c.name}_high`] : [c.name])
  const rows = result.rows.map((row, i) => row.flatMap((v, j) => {
    if (!isNoisy(result.columns[j])) return [v]
    const bounds = result.intervals[i]?.[j]
    return [v, bounds?.[0] ?? null, bounds?.[1] ?? null]
  }))
  return lines([header, ...rows])
}

export const lines = (all: Value[][]) => all.map(line => line.map(field).join(',') + '\r\n').join('')

// field quotes what needs it. A text that a spreadsheet would run as a formula gets a quote in front, which spreadsheets take for "text".
function field(v: Value): string {
  if (v === null) return ''
  if (typeof v !== 'string') return String(v)
  const text = /^[=+\-@\t\r\n＝＋－＠]/.test(v) && isNaN(Number(v)) ? `'${v}` : v
  return /[",\r\n]/.test(text) ? `"${text.replaceAll('"', '""')}"` : text
}

export const download = (name: string, text: string) => downloadFile(name, new Blob([text], { type: 'text/csv' }))

export function downloadFile(name: string, content: Blob) {
  const link = document.createElement('a')
  link.href = URL.createObjectURL(content)
  link.download = name
  link.click()
  setTimeout(() => URL.revokeObjectURL(link.href), 10_000) // the browser has begun to read it by then
}

// cells reads CSV (RFC 4180), with commas, semicolons or tabs as the first line has them.
export function cells(text: string): string[][] {
  const first = text.slice(0, (text + '\n').indexOf('\n'))
  const separator = [',', ';', '\t'].find(s => first.includes(s)) ?? ','
  const all: string[][] = [[]]
  let cell = ''
  let quoted = false
  const end = () => { all[all.length - 1].push(cell); cell = '' }
  for (let i = 0; i < text.length; i++) {
    const c = text[i]
    if (quoted) {
      if (c !== '"') cell += c
      else if (text[i + 1] === '"') { cell += c; i++ }
      else quoted = false
    } else if (c === '"' && cell === '') quoted = true
    else if (c === separator) end()
    else if (c === '\n') { end(); all.push([]) }
    else if (c !== '\r') cell += c
  }
  end()
  return all.filter(row => row.some(c => c.trim()))
}
