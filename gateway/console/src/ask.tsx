// The page on which analysts ask: a question, what it would cost, its answer, and what was asked before.

import { useEffect, useRef, useState } from 'preact/hooks'
import { AnswerView } from './answer'
import type { Answer, Dataset, Estimate, Problem, QueryRequest, ReleaseSummary, Result } from './api'
import type { PageProps } from './app'
import { Editor } from './editor'
import { EstimateView } from './estimate'
import { isFree, price, time } from './format'
import { dearer, free as nothing, isDearer, useEstimate, usePayment } from './paying'
import { ProblemBox } from './problem'
import { SettingsForm, type Settings } from './settings'
import { Tables } from './tables'
import { savedTabs, saveTabs, Tabs } from './tabs'

// Shown is an answer with the question that it is of.
interface Shown { result: Result; request: QueryRequest; headline: string }

export function Ask({ gateway, who, shown: isShown }: PageProps) {
  const [tabs, setTabs] = useState<string[]>(() => savedTabs(who))
  const [tab, setTab] = useState(0)
  const [datasets, setDatasets] = useState<Dataset[] | null>(null)
  const [history, setHistory] = useState<ReleaseSummary[]>([])
  const [older, setOlder] = useState<string | undefined>() // of the history: where the next page begins
  const [dataset, setDataset] = useState('')
  const [sql, setSQL] = useState('')
  const typed = useRef(tabs[0]) // the same, for what comes later than it was rendered
  const tabNow = useRef(0) // the tab that is open, for what the editor says later
  const [put, setPut] = useState({ text: tabs[0] })
  const [settings, setSettings] = useState<Settings>({})
  const [problem, setProblem] = useState<Problem | null>(null) // of what was done last
  const [shown, setShown] = useState<Shown | null>(null)
  const [running, setRunning] = useState(false)
  const [changed, setChanged] = useState(false) // the price, since it was shown

  const described = datasets?.find(d => d.name === dataset)
  const request: QueryRequest | null = dataset && sql.trim() ? { dataset, sql, ...settings } : null
  const { known, again } = useEstimate((q: QueryRequest, signal) => gateway.estimate(q, signal), request)
  const pay = usePayment((q: QueryRequest, payment) => gateway.query(q, payment))

  const load = () => {
    setProblem(null)
    gateway.datasets().then(list => {
      setDatasets(list.datasets)
      if (dataset || list.datasets.length === 0) return
      setDataset(list.datasets[0].name)
      if (!typed.current) setPut({ text: example(list.datasets[0]) })
    }, setProblem)
  }
  const loadHistory = (cursor = '') => {
    gateway.releases(cursor).then(list => {
      const page = list.releases.filter(r => r.request.sql)
      setHistory(before => cursor ? [...before, ...page] : page)
      setOlder(list.next_cursor)
    }, setProblem)
  }
  useEffect(() => { if (!datasets?.length) load() }, [gateway, isShown]) // a first policy may have come
  useEffect(() => { if (isShown) loadHistory() }, [gateway, isShown])

  const onType = (text: string) => {
    typed.current = text
    setSQL(text)
    setChanged(false)
    setTabs(before => saveTabs(who, before.map((t, i) => i === tabNow.current ? text : t)))
  }
  const openTab = (i: number) => {
    tabNow.current = i
    setTab(i)
    setTabs(before => saveTabs(who, i < before.length ? before : [...before, '']))
    setPut({ text: tabs[i] ?? '' })
    setShown(null)
    setProblem(null)
  }
  const closeTab = (i: number) => {
    const left = tabs.filter((_, j) => j !== i)
    const next = Math.min(i < tab ? tab - 1 : tab, left.length - 1)
    tabNow.current = next
    setTab(next)
    setTabs(saveTabs(who, left))
    setPut({ text: left[next] })
    if (i === tab) setShown(null)
  }

  const estimate = known?.estimate
  const free = !!estimate && isPaid(estimate)
  const label = estimate ? labelOf(estimate) : 'Run'
  const ready = !!estimate && (free || estimate.affordable) && !running
  const run = async () => {
    if (!ready || !request || running) return
    setRunning(true)
    setProblem(null)
    setChanged(false)
    try {
      // The price may be another since it was shown: policies and copies change.
      if (label !== labelOf(await gateway.estimate(request, new AbortController().signal))) return setChanged(true)
      const answer = await pay(request, free ? nothing : estimate.price)
      if (answer) setShown({ result: answer, request, headline: headlineOf(answer) })
      loadHistory()
    } catch (e) {
      if (isDearer(e)) setChanged(true)
      else setProblem(e as Problem)
    } finally {
      setRunning(false)
      again() // it is free now, or what is left has changed
    }
  }
  const recall = async (r: ReleaseSummary) => {
    setProblem(null)
    const { dataset, sql, epsilon, delta, mechanism, confidence } = r.request
    setDataset(dataset)
    setPut({ text: sql })
    setSettings({ epsilon, delta, mechanism, confidence }) // those that the form shows: another one, such as a plan, would stay unseen
    try {
      const release = await gateway.release(r.release_id)
      setShown({ result: release, request: r.request, headline: `From your history, free: released ${time(r.at)} for ${price(r.cost)}.` })
    } catch (e) {
      setProblem(e as Problem)
    }
  }

  if (datasets?.length === 0) return <p>There is no dataset that you may ask about yet.</p>
  return <div class="ask">
    <div class="column">
      <section class="question" aria-label="Question">
        <h1>Ask</h1>
        <Tabs tabs={tabs} open={tab} onOpen={openTab} onNew={() => openTab(tabs.length)} onClose={closeTab} />
        <div class="row">
          <label>Dataset <select value={dataset} onChange={e => setDataset(e.currentTarget.value)}>
            {datasets?.map(d => <option key={d.name} value={d.name}>{d.name}</option>)}
          </select></label>
          <SettingsForm settings={settings} onChange={setSettings} />
        </div>
        <Editor put={put} dataset={described} error={known?.problem?.position} onChange={onType} onRun={run} />
        <p class="row run">
          <button class="primary" disabled={!ready} onClick={run} title="Ctrl+Enter">{running ? 'Running …' : label}</button>
          <span class="muted" role="status">{changed ? dearer :
            statusOf(request, known !== null, estimate && !free && !estimate.affordable)}</span>
        </p>
        {problem && <ProblemBox problem={problem}>
          {!datasets && <button onClick={load}>Try again</button>}
        </ProblemBox>}
      </section>
      {shown && <AnswerView key={shown.headline + shown.request.sql} {...shown} />}
    </div>
    <div class="column">
      <section class="side" aria-label="Estimate">
        <h2>What it costs</h2>
        <EstimateView known={known} onSQL={text => setPut({ text })} onEpsilon={epsilon => setSettings({ ...settings, epsilon })} />
      </section>
      <section class="side past" aria-label="History">
        <h2>Asked before</h2>
        {history.length === 0 ? <p class="muted">Nothing yet. What you buy stays yours: it is shown again free.</p> : <ul class="history">
          {history.map(r => <li key={r.release_id}><button class="quiet" onClick={() => recall(r)}>
            <code><bdi>{r.request.sql.replace(/\s+/g, ' ').slice(0, 120)}</bdi></code>
            <span class="muted">{time(r.at)} · {price(r.cost)}</span>
          </button></li>)}
        </ul>}
        {older && <p class="more"><button onClick={() => loadHistory(older)}>Show older</button></p>}
        {described && <Tables dataset={described} />}
      </section>
    </div>
  </div>
}

function statusOf(request: QueryRequest | null, isKnown: boolean, tooMuch?: boolean): string {
  if (!request) return 'Type a question.'
  if (!isKnown) return 'Estimating …'
  return tooMuch ? 'More than what is left of your budget.' : ''
}

// isPaid reports whether an answer costs nothing: it was paid before, or reads no private row.
function isPaid(e: Estimate): boolean { return e.replayed || isFree(e.price) }

// labelOf names the price on the button.
function labelOf(e: Estimate): string { return isPaid(e) ? 'Run, free' : `Run for ${price(e.price)}` }

function headlineOf(a: Answer): string {
  if (a.replayed) return `Free: you asked this before${a.released_at ? ` (released ${time(a.released_at)})` : ''}.`
  if (!a.release_id) return 'Free: no private row was read.'
  return `Spent ${price(a.spent)}; ${price(a.remaining)} left.`
}

// example is a question to begin with: a count by the first key that every value of is public.
export function example(dataset: Dataset): string {
  for (const table of dataset.tables) {
    const key = table.columns.find(c => c.keys === 'public')
    if (!table.public && key) return `SELECT ${name(key.name)}, count(*) AS n\nFROM ${name(table.name)}\nGROUP BY ${name(key.name)}\nORDER BY n DESC`
  }
  const table = dataset.tables.find(t => !t.public)
  return table ? `SELECT count(*) AS n\nFROM ${name(table.name)}` : ''
}

const name = (text: string) => /^[a-z_][a-z0-9_]*$/.test(text) ? text : `"${text.replaceAll('"', '""')}"`
