// The tables of a dataset, with what analysts may know of them.

import type { Dataset, Table, TableColumn } from './api'

export function Tables({ dataset }: { dataset: Dataset }) {
  return <>
    <h2>Tables</h2>
    {dataset.tables.map(t => <details key={t.name} class="table">
      <summary><code><bdi>{t.name}</bdi></code> <span class="muted">{about(t)}</span></summary>
      <ul>{t.columns.map(c => <li key={c.name}><code><bdi>{c.name}</bdi></code> <span class="muted">{c.type}<bdi>{more(c)}</bdi></span></li>)}</ul>
    </details>)}
  </>
}

function about(t: Table): string {
  if (t.public) return 'public'
  if (t.unit?.kind === 'row') return `a row is one ${t.unit.column}`
  return `at most ${t.max_rows} rows of one ${t.unit?.column ?? 'unit'} count in a group`
}

function more(c: TableColumn): string {
  const parts = []
  if (c.bounds) parts.push(`, ${c.bounds.lo} to ${c.bounds.hi}`)
  if (c.keys) parts.push(`, ${c.keys} keys`)
  return parts.join('')
}
