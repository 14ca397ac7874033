// A refusal or failure, with what to do about it.

import type { ComponentChildren } from 'preact'
import type { Problem } from './api'

export function ProblemBox({ problem, children }: { problem: Problem; children?: ComponentChildren }) {
  return <div class="problem" role="alert">
    <p><strong><bdi>{problem.detail}</bdi></strong></p>
    {problem.position && <p>Line {problem.position.line}, column {problem.position.column}.</p>}
    {problem.hint && <p><bdi>{problem.hint}</bdi></p>}
    {children}
    {problem.code && <p class="aside"><a href="/docs/errors" target="_blank" rel="noopener"><code>{problem.code}</code></a></p>}
  </div>
}
