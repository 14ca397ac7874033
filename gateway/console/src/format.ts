// Numbers, prices and times as people read them. Everything here gives text.

import type { Amounts, Column, Value } from './api'

const significant = new Intl.NumberFormat('en', { maximumSignificantDigits: 3 })

// figure is a released number without the digits that noise drowns; other values are their own text. Ends of intervals are rounded away
// from each other: 'floor' and 'ceil'. There is no -0.
export function figure(v: Value, digits?: number, roundingMode: 'halfExpand' | 'floor' | 'ceil' = 'halfExpand'): string {
  if (v === null) return 'NULL'
  if (typeof v !== 'number') return String(v)
  const places = digits === undefined ? undefined : Math.min(Math.max(digits, 0), 12)
  return new Intl.NumberFormat('en', { minimumFractionDigits: places, maximumFractionDigits: places ?? 6, roundingMode }).format(v)
    .replace(/^-(?=[0.]+$)/, '')
}

// error is the size of an error: three digits tell all.
export const error = (v: Value) => typeof v === 'number' ? significant.format(v) : v === null ? '' : String(v)

// amount is a decimal of the ledger, exact; a tiny one is written as a power of ten.
export function amount(text: string): string {
  const n = Number(text)
  if (n === 0 || Math.abs(n) >= 1e-4) return text
  const [digits, power] = n.toExponential().split('e')
  return `${digits === '1' ? '' : `${digits}·`}10${[...power].map(c => c === '-' ? '⁻' : '⁰¹²³⁴⁵⁶⁷⁸⁹'[Number(c)]).join('')}`
}

// price names what is paid: ε where there is one, else ρ, and δ where there is one.
export function price(a: Amounts): string {
  const parts: string[] = []
  if (a.epsilon !== null) parts.push(`ε ${amount(a.epsilon)}`)
  else if (a.rho !== null) parts.push(`ρ ${amount(a.rho)}`)
  if (a.delta !== null && Number(a.delta) !== 0) parts.push(`δ ${amount(a.delta)}`)
  return parts.join(', ') || 'nothing'
}

export const isFree = (a: Amounts) => [a.epsilon, a.rho, a.delta].every(x => x === null || Number(x) === 0)

// isNoisy tells columns that have noise from keys, and from answers that read nothing private.
export const isNoisy = (c: Column) => c.kind === 'aggregate' || c.kind === 'derived'

export const time = (iso: string) => new Date(iso).toLocaleString('en-GB', { dateStyle: 'medium', timeStyle: 'short' })
