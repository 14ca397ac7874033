// What an analyst bought with noisegate bounds --json: a file of somebody else's, of which every value is checked and shown as text.

export interface Kept { bound: number; share: number; low: number; high: number } // of units that the bound keeps whole
export interface Report {
  dataset: string; schema: string; table: string; by: string[]; epsilon: string
  histograms: { bounds: string; column: string; kept: Kept[] }[] // bounds that rise
}

const largest = 1 << 20 // bytes
const kinds = ['max_rows', 'max_groups', 'max_rows_total', 'least', 'most']

// readReport is the report in a file; it throws what is wrong with it.
export async function readReport(file: File): Promise<Report> {
  if (file.size > largest) throw new Error('it has more than 1 MiB')
  return reportOf(await file.text())
}

export function reportOf(text: string): Report {
  const want = (ok: boolean, where: string, what: string) => { if (!ok) throw new Error(`${where} is not ${what}`) }
  const object = (v: unknown, where: string) => {
    want(typeof v === 'object' && v !== null && !Array.isArray(v), where, 'an object')
    return v as Record<string, unknown>
  }
  const list = (v: unknown, where: string, most: number) => {
    want(Array.isArray(v) && v.length <= most, where, `a list of at most ${most}`)
    return v as unknown[]
  }
  const name = (v: unknown, where: string) => {
    want(typeof v === 'string' && v !== '' && v.length <= 200, where, 'a text of 1 to 200 characters')
    return v as string
  }
  const number = (v: unknown, where: string, least: number, most: number) => {
    want(typeof v === 'number' && v >= least && v <= most, where, least < 0 ? 'a number' : `a number from ${least} to ${most}`)
    return v as number
  }
  let parsed: unknown
  try { parsed = JSON.parse(text) } catch { throw new Error('it is not JSON') }
  const top = object(parsed, 'it')
  want(top.format === 'noisegate bounds/1', 'format', 'noisegate bounds/1, which noisegate bounds --json writes')
  const seen = new Set<string>()
  const histograms = list(top.histograms, 'histograms', 1000).map((v, i) => {
    const at = `histograms[${i}]`
    const h = object(v, at)
    const bounds = name(h.bounds, `${at}.bounds`)
    want(kinds.includes(bounds), `${at}.bounds`, `one of ${kinds.join(', ')}`)
    const ofColumn = bounds === 'least' || bounds === 'most'
    const column = ofColumn ? name(h.column, `${at}.column`) : ''
    want(!seen.has(`${bounds} ${column}`), at, 'the only one of its kind')
    seen.add(`${bounds} ${column}`)
    const kept = list(h.kept, `${at}.kept`, 1000).map((v, j): Kept => {
      const here = `${at}.kept[${j}]`
      const k = object(v, here)
      const share = number(k.share, `${here}.share`, 0, 1)
      return { bound: number(k.bound, `${here}.bound`, ofColumn ? -1e15 : 1, 1e15), share,
        low: number(k.low, `${here}.low`, 0, share), high: number(k.high, `${here}.high`, share, 1) }
    }).sort((a, b) => a.bound - b.bound)
    want(kept.every((k, j) => j === 0 || k.bound > kept[j - 1].bound), `${at}.kept`, 'a list of different bounds')
    return { bounds, column, kept }
  })
  want(typeof top.epsilon === 'string' && /^\d{1,9}(\.\d{1,12})?$/.test(top.epsilon), 'epsilon', 'a decimal')
  return { dataset: name(top.dataset, 'dataset'), schema: name(top.schema, 'schema'), table: name(top.table, 'table'),
    by: top.by === undefined ? [] : list(top.by, 'by', 100).map((v, i) => name(v, `by[${i}]`)), epsilon: top.epsilon as string, histograms }
}

// keeps is what the report says of a bound, by the nearest one of its own that is no wider.
export function keeps(k: Kept | undefined): string {
  const percent = (share: number, round: (n: number) => number) => (round(1000 * share) / 10).toFixed(1)
  return k ? `keeps about ${percent(k.share, Math.round)} % (${percent(k.low, Math.floor)} to ${percent(k.high, Math.ceil)}) of units whole` : ''
}
