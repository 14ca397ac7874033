// The SQL editor: CodeMirror in a shadow root. There its styles are constructed sheets, so that the page's policy needs no exception for
// them.

import { autocompletion, closeBrackets, closeBracketsKeymap, completionKeymap, type CompletionContext } from '@codemirror/autocomplete'
import { defaultKeymap, history, historyKeymap } from '@codemirror/commands'
import { PostgreSQL, schemaCompletionSource } from '@codemirror/lang-sql'
import { bracketMatching, HighlightStyle, syntaxHighlighting } from '@codemirror/language'
import { Compartment, EditorState, StateEffect, StateField } from '@codemirror/state'
import { Decoration, drawSelection, EditorView, keymap, placeholder, type DecorationSet } from '@codemirror/view'
import { tags } from '@lezer/highlight'
import { useEffect, useRef } from 'preact/hooks'
import type { Dataset } from './api'
import { functions, keywords } from './functions'

export interface EditorProps {
  put: { text: string } // another object puts its text in place of what was typed
  dataset?: Dataset
  error?: { line: number; column: number }
  onChange: (text: string) => void
  onRun: () => void
}

// The colours are those of style.css: custom properties reach into shadow roots.
const colours = HighlightStyle.define([
  { tag: tags.keyword, color: 'var(--keyword)', fontWeight: '600' },
  { tag: [tags.string, tags.special(tags.string)], color: 'var(--string)' },
  { tag: [tags.number, tags.bool, tags.null], color: 'var(--number)' },
  { tag: tags.comment, color: 'var(--muted)', fontStyle: 'italic' },
])

const theme = EditorView.theme({
  '&': { color: 'var(--text)', backgroundColor: 'var(--field)', fontSize: '0.95rem', borderRadius: '6px' },
  '&.cm-focused': { outline: '2px solid var(--accent)', outlineOffset: '-1px' },
  '.cm-scroller': { fontFamily: 'var(--mono)', lineHeight: '1.5', minHeight: '8rem', maxHeight: '50vh' },
  '.cm-content': { caretColor: 'var(--text)', padding: '0.6rem 0.4rem' },
  '.cm-cursor': { borderLeftColor: 'var(--text)' },
  '&.cm-focused > .cm-scroller > .cm-selectionLayer .cm-selectionBackground, .cm-selectionBackground': { backgroundColor: 'var(--selection)' },
  '.cm-placeholder': { color: 'var(--muted)' },
  '.cm-error': { textDecoration: 'underline wavy var(--bad)', textUnderlineOffset: '3px' },
  '.cm-matchingBracket': { backgroundColor: 'var(--selection) !important' },
  '.cm-tooltip': { backgroundColor: 'var(--panel)', color: 'var(--text)', border: '1px solid var(--line)', borderRadius: '6px' },
  '.cm-tooltip-autocomplete ul li[aria-selected]': { backgroundColor: 'var(--accent)', color: 'var(--on-accent)' },
  '.cm-completionDetail': { color: 'inherit', marginLeft: '1em' },
})

// The place of the error, as the gateway gives it: counted from 1 in characters.
const setError = StateEffect.define<EditorProps['error']>()
const errorMark = StateField.define<DecorationSet>({
  create: () => Decoration.none,
  update(marks, change) {
    for (const effect of change.effects) if (effect.is(setError)) return markOf(change.state, effect.value)
    return change.docChanged ? Decoration.none : marks
  },
  provide: field => EditorView.decorations.from(field),
})

function markOf(state: EditorState, at: EditorProps['error']): DecorationSet {
  if (!at || at.line > state.doc.lines) return Decoration.none
  const line = state.doc.line(at.line)
  const before = [...line.text].slice(0, at.column - 1).join('').length // characters to units of UTF-16
  let from = Math.min(line.from + before, line.to)
  const word = /^\w+|^./u.exec(line.text.slice(from - line.from))?.[0].length ?? 0
  if (!word && from > line.from) from-- // the end of the text: its last character
  const to = Math.min(from + Math.max(word, 1), line.to)
  return from < to ? Decoration.set(Decoration.mark({ class: 'cm-error' }).range(from, to)) : Decoration.none
}

// language knows the tables and columns of a dataset.
function language(dataset?: Dataset) {
  const schema: Record<string, { label: string; type: string; detail: string }[]> = {}
  for (const table of dataset?.tables ?? []) {
    schema[table.name] = table.columns.map(c => ({ label: c.name, type: 'property', detail: c.type }))
  }
  const columns = [...new Map(Object.values(schema).flat().map(c => [c.label, c])).values()]
  const names = (context: CompletionContext) => {
    const word = context.matchBefore(/\w+/)
    if (!word || context.matchBefore(/\.\w*/)) return null // behind a dot, the schema completes
    return { from: word.from, options: [...columns, ...functions, ...keywords], validFor: /^\w*$/ }
  }
  const { language } = PostgreSQL
  return [language, language.data.of({ autocomplete: schemaCompletionSource({ dialect: PostgreSQL, schema }) }),
    language.data.of({ autocomplete: names })]
}

export function Editor(props: EditorProps) {
  const host = useRef<HTMLDivElement>(null)
  const view = useRef<EditorView | null>(null)
  const schema = useRef(new Compartment())
  const now = useRef(props)
  now.current = props
  useEffect(() => {
    const root = host.current!.attachShadow({ mode: 'open' })
    view.current = new EditorView({
      root, parent: root as unknown as Element,
      state: EditorState.create({
        doc: props.put.text,
        extensions: [
          keymap.of([{ key: 'Mod-Enter', run: () => { now.current.onRun(); return true } }]),
          history(), drawSelection(), bracketMatching(), closeBrackets(), autocompletion(), syntaxHighlighting(colours), theme, errorMark,
          keymap.of([...closeBracketsKeymap, ...completionKeymap, ...historyKeymap, ...defaultKeymap]), // Tab leaves the editor
          EditorView.lineWrapping, placeholder('SELECT ...'), schema.current.of(language(props.dataset)),
          EditorView.contentAttributes.of({ 'aria-label': 'Question in SQL', spellcheck: 'false', autocapitalize: 'off' }),
          EditorView.updateListener.of(u => { if (u.docChanged) now.current.onChange(u.state.doc.toString()) }),
        ],
      }),
    })
    return () => view.current?.destroy()
  }, [])
  useEffect(() => {
    const v = view.current!
    v.dispatch({ changes: { from: 0, to: v.state.doc.length, insert: props.put.text } })
  }, [props.put])
  useEffect(() => { view.current!.dispatch({ effects: schema.current.reconfigure(language(props.dataset)) }) }, [props.dataset])
  useEffect(() => { view.current!.dispatch({ effects: setError.of(props.error) }) }, [props.error])
  return <div class="editor" ref={host} />
}
