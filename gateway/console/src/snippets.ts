// The same question for other clients. Tokens stand in none of them: each reads the variable that its page names.

import type { QueryRequest } from './api'
import { always as quoted } from './command'

export const snippets: { name: string; text: (q: QueryRequest, origin: string) => string }[] = [
  { name: 'curl', text: curl },
  { name: 'Python', text: python },
  { name: 'psql', text: psql },
]

function curl(q: QueryRequest, origin: string): string {
  return `curl -fsS ${quoted(origin + '/v1/query')} -H "Authorization: Bearer $NOISEGATE_TOKEN" \\\n` +
    `  -H "Content-Type: application/json" -d ${quoted(JSON.stringify(q))}\n`
}

// python uses the client of docs/notebooks.md.
function python(q: QueryRequest, origin: string): string {
  const { sql, dataset, ...settings } = q
  const more = Object.entries(settings).map(([name, v]) => `, ${name}=${inPython(v)}`).join('')
  return `import noisegate  # ${origin}/docs/noisegate.py\n\n` +
    `ng = noisegate.Client(${inPython(origin)}, dataset=${inPython(dataset)})\n` +
    `answer = ng.query(${inPython(sql)}${more})\nprint(answer)\n`
}

// inPython is a value of JSON as Python writes it: strings and numbers are the same.
function inPython(v: unknown): string {
  if (v === null) return 'None'
  if (typeof v === 'boolean') return v ? 'True' : 'False'
  if (Array.isArray(v)) return `[${v.map(inPython).join(', ')}]`
  if (typeof v === 'object') return `{${Object.entries(v).map(([name, of]) => `${JSON.stringify(name)}: ${inPython(of)}`).join(', ')}}`
  return JSON.stringify(v)
}

// psqlSettings are those of a question that a session has, too.
const psqlSettings = ['epsilon', 'rho', 'delta', 'confidence', 'mechanism', 'max_groups', 'max_rows', 'report', 'version', 'plan']

// psql needs the address of the second door, which the operator knows ($URL, as in docs/psql.md). "standard_conforming_strings" holds there.
// A question with a setting that no session has would be another one there, which is charged anew.
function psql(q: QueryRequest): string {
  const { sql, dataset, ...settings } = q
  const other = Object.entries(settings).filter(([name, v]) => v !== undefined && (!psqlSettings.includes(name) || typeof v === 'object'))
  if (other.length) return `# psql has no setting for ${other.map(([name]) => name).join(', ')}: take curl or Python\n`
  const set = Object.entries(settings).map(([name, v]) => ` -c ${quoted(`SET noisegate.${name} = '${String(v).replaceAll("'", "''")}'`)}`)
  return `psql "$URL" -v ON_ERROR_STOP=1${set.join('')} -c ${quoted(sql)}\n`
}
