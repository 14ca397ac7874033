// What takes a signature: the command that makes it where the key is, and a place for what it prints. No private key comes here.

import { useState } from 'preact/hooks'
import type { Signature } from './api'
import { CopyButton } from './copy'

export interface Command { title: string; text: string }

// Signing shows what is signed, as far as the page knows it, and takes a signature by pasting, dropping or choosing a file.
export function Signing({ open, commands, lines, onSigned }: {
  open: boolean; commands: Command[]; lines?: string; onSigned: (s: Signature | null) => void
}) {
  const [text, setText] = useState('')
  const put = (text: string) => { setText(text); onSigned(signatureOf(text)) }
  const take = async (files: FileList | null | undefined) => { if (files?.[0]) put(await files[0].text()) }
  return <details class="signing" open={open}>
    <summary>With a signature</summary>
    <p>Keys stay where they are. Whoever signs runs this beside their key, with a token of their own, and sees all that is signed.</p>
    {commands.map(c => <div key={c.title}>
      <h3>{c.title}</h3>
      <pre class="scroll command" tabIndex={0} role="region" aria-label={`Command: ${c.title}`}><bdi>{c.text}</bdi></pre>
      <p><CopyButton text={c.text} /></p>
    </div>)}
    {lines && <>
      <h3>What is signed, before names and time</h3>
      <pre class="scroll" tabIndex={0} role="region" aria-label="What is signed"><bdi>{lines}</bdi></pre>
    </>}
    <label for="signature">The signature that the command prints: paste it, or drop its file here</label>
    <textarea id="signature" rows={4} value={text} spellcheck={false} aria-invalid={!!text.trim() && !signatureOf(text)} onInput={e => put(e.currentTarget.value)}
      onDragOver={e => e.preventDefault()} onDrop={e => { e.preventDefault(); void take(e.dataTransfer?.files) }} />
    <p><input type="file" accept=".json,application/json" aria-label="File of the signature" onChange={e => void take(e.currentTarget.files)} /></p>
    <p role="status" class="muted">{!text.trim() ? '' : signatureOf(text) ? 'It goes with the change.' : 'This is no signature: paste all that the command prints.'}</p>
  </details>
}

// signatureOf reads what a command printed. Whether it holds is the gateway's to say.
function signatureOf(text: string): Signature | null {
  try {
    const value = JSON.parse(text)
    return typeof value?.key === 'string' && typeof value?.signature === 'string' ? value : null
  } catch {
    return null
  }
}
