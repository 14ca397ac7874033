// Copying a text. A page that came over plain HTTP has no clipboard, and a browser may refuse one: then it is copied by hand.

import { useState } from 'preact/hooks'

export function CopyButton({ text }: { text: string }) {
  const [said, setSaid] = useState('')
  const copy = () => navigator.clipboard?.writeText(text).then(() => setSaid('Copied.'), () => setSaid('The browser does not let this page copy: mark it by hand.'))
    ?? setSaid('The browser does not let this page copy: mark it by hand.')
  return <><button onClick={copy}>Copy</button> <span class="muted" role="status">{said}</span></>
}
