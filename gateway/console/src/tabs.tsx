// Several questions side by side. Their texts alone are kept, in this browser, for who is logged in; no answer and no token is.

const most = 20 // that are kept

const place = (who: string) => `noisegate.questions ${who}`

// savedTabs are the texts of last time; one that is empty where there are none.
export function savedTabs(who: string): string[] {
  try {
    const kept = JSON.parse(localStorage.getItem(place(who)) ?? '[]')
    if (Array.isArray(kept) && kept.length > 0 && kept.every(t => typeof t === 'string')) return kept.slice(0, most)
  } catch { /* another program's text, or storage that is closed */ }
  return ['']
}

export function saveTabs(who: string, tabs: string[]): string[] {
  try {
    localStorage.setItem(place(who), JSON.stringify(tabs.slice(0, most)))
  } catch { /* it is full or closed: tabs last as long as the page */ }
  return tabs
}

export function Tabs({ tabs, open, onOpen, onNew, onClose }: {
  tabs: string[]; open: number; onOpen: (i: number) => void; onNew: () => void; onClose: (i: number) => void
}) {
  return <div class="tabs" role="group" aria-label="Questions">
    {tabs.length > 1 && tabs.map((text, i) => <button key={i} aria-pressed={i === open} onClick={() => { if (i !== open) onOpen(i) }}>
      <bdi>{text.replace(/\s+/g, ' ').trim().slice(0, 40) || `Question ${i + 1}`}</bdi></button>)}
    {tabs.length < most && <button onClick={onNew}>New question</button>}
    {tabs.length > 1 && <button class="quiet" onClick={() => onClose(open)}>Close this one</button>}
  </div>
}
