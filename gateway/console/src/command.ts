// Commands for a terminal, one word after another.

// quoted is one word of a shell; a plain one stays as it is.
export const quoted = (text: string) => /^[\w.,:@%+=/-]+$/.test(text) ? text : always(text)
export const always = (text: string) => `'${text.replaceAll("'", `'\\''`)}'`

// command is a command of noisegate that asks this gateway. Flags without a value are left out, and true ones have none.
export function command(words: string[], flags: Record<string, string | boolean | undefined | null>): string {
  const given = Object.entries(flags).filter(([, v]) => v !== undefined && v !== null && v !== '' && v !== false)
  return ['noisegate', ...words.map(quoted), ...given.map(([name, v]) => v === true ? `--${name}` : `--${name} ${quoted(String(v))}`),
    `--url ${quoted(location.origin)}`].join(' ')
}
