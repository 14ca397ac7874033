// Builds dist from src: `npm run build`. The same sources and lock file give the same bytes.

import { build } from 'esbuild'
import { copyFile, mkdir, readFile, rm, writeFile } from 'node:fs/promises'
import { existsSync } from 'node:fs'

await rm('dist', { recursive: true, force: true })
await mkdir('dist')
const { metafile } = await build({
  entryPoints: { console: 'src/main.tsx', edits: 'src/edits.ts' }, outdir: 'dist', bundle: true, minify: true, format: 'esm', target: 'es2022', charset: 'utf8',
  jsx: 'automatic', jsxImportSource: 'preact', legalComments: 'none', metafile: true, logLevel: 'warning',
})
await build({ entryPoints: { console: 'src/style.css' }, outdir: 'dist', bundle: true, minify: true, legalComments: 'none', logLevel: 'warning' })
for (const name of ['index.html', 'icon.svg']) await copyFile(`src/${name}`, `dist/${name}`)

// The licences of what is in the bundle go with it.
const parts = [...new Set(Object.keys(metafile.inputs).map(path => /node_modules\/((?:@[^/]+\/)?[^/]+)/.exec(path)?.[1]).filter(Boolean))].sort()
const licences = await Promise.all(parts.map(async part => {
  const { version, license } = JSON.parse(await readFile(`node_modules/${part}/package.json`, 'utf8'))
  const file = ['LICENSE', 'LICENSE.md', 'license'].map(name => `node_modules/${part}/${name}`).find(existsSync)
  if (!file) throw new Error(`${part} has no licence`)
  return `${part} ${version} (${license})\n\n${(await readFile(file, 'utf8')).trim()}\n`
}))
await writeFile('dist/licences.txt', licences.join(`\n${'-'.repeat(72)}\n\n`))
