// The settings of a question. What is left empty is not sent: the policy's own default counts then.

import type { QueryRequest } from './api'

export type Settings = Omit<QueryRequest, 'dataset' | 'sql'>

const decimal = /^\d*\.?\d+(e-?\d+)?$/i

export function SettingsForm({ settings, onChange }: { settings: Settings; onChange: (s: Settings) => void }) {
  const set = (change: Settings) => {
    const all: Settings = { ...settings, ...change }
    for (const name of Object.keys(all) as (keyof Settings)[]) if (all[name] === undefined || all[name] === '') delete all[name]
    onChange(all)
  }
  const amount = (name: 'epsilon' | 'delta', title: string) => <label>{title} <input class="amount" inputMode="decimal" size={6}
    placeholder="default" value={settings[name] ?? ''} aria-invalid={!!settings[name] && !decimal.test(settings[name])}
    onInput={e => set({ [name]: e.currentTarget.value.trim() })} /></label>
  return <>
    {amount('epsilon', 'ε')}
    <details class="more-settings">
      <summary>More</summary>
      <div class="row">
        {amount('delta', 'δ')}
        <label>Noise <select value={settings.mechanism ?? ''} onChange={e => set({ mechanism: e.currentTarget.value })}>
          <option value="">chosen</option><option value="laplace">Laplace</option><option value="gaussian">Gaussian</option>
        </select></label>
        <label>Intervals <select value={String(settings.confidence ?? '')}
          onChange={e => set({ confidence: e.currentTarget.value ? Number(e.currentTarget.value) : undefined })}>
          <option value="">95 %</option>{[0.8, 0.9, 0.99].map(c => <option key={c} value={String(c)}>{c * 100} %</option>)}
        </select></label>
      </div>
    </details>
  </>
}
