// Prepared copies: which there are, which one questions read, and runs that make new ones. None costs anything, and no number of rows is
// shown: the gateway tells none.

import { useEffect, useState } from 'preact/hooks'
import type { Gateway, PreparedList, PreparedTable, Problem } from './api'
import { CopyButton } from './copy'
import { time } from './format'
import { ProblemBox } from './problem'

const pause = 1000 // between two looks at what is running, in milliseconds
const settles = 5 // looks after the end of a run: the gateway finds versions every three seconds

export function Prepared({ gateway, dataset }: { gateway: Gateway; dataset: string }) {
  const [list, setList] = useState<PreparedList | null>(null)
  const [lost, setLost] = useState<Problem | null>(null) // why the last look failed
  const [problem, setProblem] = useState<Problem | null>(null)
  const [looks, setLooks] = useState(0) // how many more there will be
  const load = () => gateway.prepared(dataset).then(list => { setList(list); setLost(null) }, setLost)
  useEffect(() => { void load() }, [])
  const running = list?.jobs.find(job => job.state === 'running')
  useEffect(() => { if (running) setLooks(settles) }, [list])
  useEffect(() => {
    if (!running && looks === 0) return
    const timer = setTimeout(() => { if (!running) setLooks(looks - 1); void load() }, pause)
    return () => clearTimeout(timer)
  }, [list, lost, looks])
  const act = (does: Promise<unknown>) => { setProblem(null); does.then(load, setProblem) }
  if (!list && !lost) return null
  return <section class="card wide" aria-label="Prepared copies">
    <h2>Prepared copies</h2>
    {(problem ?? lost) && <ProblemBox problem={(problem ?? lost)!} />}
    {list && list.tables.length === 0 && <p>The policy asks for none. A copy in which each person has few rows makes questions cheaper to compute: <a
      href="/docs/prepared" target="_blank" rel="noopener">what to write</a>.</p>}
    {list && list.tables.length > 0 && <>
      <div class="scroll" tabIndex={0} role="region" aria-label="Table of copies"><table>
        <thead><tr><th scope="col">table</th><th scope="col">the policy asks for</th><th scope="col">versions</th><th scope="col">questions read</th>
          <th scope="col" class="unprinted">change</th></tr></thead>
        <tbody>{list.tables.map(t => <tr key={t.table}>
          <td><bdi>{t.table}</bdi></td><td><bdi>{asked(t)}</bdi></td>
          <td>{t.versions.length === 0 ? 'none' : t.versions.map(v => <div key={v.version}>version {v.version} as of {time(v.as_of)}{!v.fits && ', made for another policy'}</div>)}</td>
          <td>{read(t)}</td>
          <td class="deeds unprinted">{list.can_prepare && t.max_rows && <>
            <button disabled={!!running} aria-label={`Prepare ${t.table}`} onClick={() => act(gateway.prepare(dataset, t.table, false))}>Prepare</button>
            {t.append && <button disabled={!!running} aria-label={`Make ${t.table} anew`} onClick={() => act(gateway.prepare(dataset, t.table, true))}>Make anew</button>}
          </>}</td>
        </tr>)}</tbody>
      </table></div>
      {list.can_prepare ? <p class="muted unprinted"><em>Prepare</em> reads the table in the protected database, and writes a new version of its copy there. It spends
        nothing; what was bought stays free.</p> : <div class="unprinted"><p class="muted">This gateway makes no copies. Whoever runs it does:</p>
        <pre class="scroll command" tabIndex={0} role="region" aria-label="Command: prepare"><bdi>{`noisegate prepare --dataset ${dataset}`}</bdi></pre>
        <p><CopyButton text={`noisegate prepare --dataset ${dataset}`} /></p></div>}
    </>}
    {list && list.jobs.length > 0 && <>
      <h3>Runs <span class="muted">of this gateway, since it started</span></h3>
      <div role="status"><ul class="notes">{list.jobs.slice(0, 5).map(job => <li key={job.job_id}>
        {time(job.begun)} by <bdi>{job.by}</bdi>: {job.state}
        {job.state === 'running' && <> <button class="unprinted" onClick={() => act(gateway.cancelPrepare(dataset, job.job_id))}>Cancel</button></>}
        <ul>{job.tables.map(t => <li key={t.table}><bdi>{t.table}</bdi>: {t.state}{t.step && `, at its ${t.step}`}{t.version && `, version ${t.version}`}
          {t.problem && <>: <bdi>{t.problem}</bdi></>}</li>)}</ul>
      </li>)}</ul></div>
    </>}
  </section>
}

function asked(t: PreparedTable): string {
  if (!t.max_rows) return 'no copy'
  const parts = [`at most ${t.max_rows.toLocaleString('en')} ${t.max_rows === 1 ? 'row' : 'rows'} of one unit`]
  if (t.append) parts.push(`new rows appended by ${t.append}`)
  if (t.ranks) parts.push(`ranks by ${t.ranks.map(set => set.join(' and ')).join('; by ')}`)
  return parts.join(', ')
}

function read(t: PreparedTable): string {
  const serving = t.versions.find(v => v.serves)
  if (serving) return `version ${serving.version}, ${t.required ? 'and nothing else' : 'where it errs no more than the table'}`
  return t.required ? 'nothing: they are refused until there is a copy' : 'the table'
}
