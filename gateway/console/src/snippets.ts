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

// python uses the client of docs/notebooks.md. JSON's strings are Python's.
function python(q: QueryRequest, origin: string): string {
  const { sql, dataset, ...settings } = q
  const more = Object.entries(settings).map(([name, v]) => `, ${name}=${JSON.stringify(v)}`).join('')
  return `import noisegate  # ${origin}/docs/noisegate.py\n\n` +
    `ng = noisegate.Client(${JSON.stringify(origin)}, dataset=${JSON.stringify(dataset)})\n` +
    `answer = ng.query(${JSON.stringify(sql)}${more})\nprint(answer)\n`
}

// psql needs the address of the second door, which the operator knows ($URL, as in docs/psql.md). "standard_conforming_strings" holds there.
function psql(q: QueryRequest): string {
  const { sql, dataset, ...settings } = q
  const set = Object.entries(settings).map(([name, v]) => ` -c ${quoted(`SET noisegate.${name} = '${String(v).replaceAll("'", "''")}'`)}`)
  return `psql "$URL"${set.join('')} -c ${quoted(sql)}\n`
}
