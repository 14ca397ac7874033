// A gateway as an operator starts one, on the PostgreSQL of a demo, with a ledger of its own.

import { execFileSync, spawn } from 'node:child_process'
import { writeFileSync } from 'node:fs'
import { createInterface } from 'node:readline'
import { program, type Demo } from './demo'

export interface Gateway { http: string; stop: () => Promise<void> }

export interface Options {
  auth: string // that section of the configuration, as YAML
  policy?: string // a file with a policy of census, which is applied; none: the gateway is empty
  stewards?: string // a file with public keys
}

// startGateway makes a control database, and runs migrate and serve.
export async function startGateway(demo: Demo, name: string, options: Options): Promise<Gateway> {
  const dsn = (role: string, database: string) => `postgres://${role}@/${database}?host=${encodeURIComponent(demo.sockets)}&port=5432`
  const psql = (database: string, ...args: string[]) =>
    execFileSync('psql', ['-qX', '-v', 'ON_ERROR_STOP=1', ...args, dsn('postgres', database)], { stdio: ['ignore', 'ignore', 'inherit'] })
  psql('postgres', '-c', `CREATE DATABASE ${name} TEMPLATE template0 ENCODING 'UTF8'`)
  psql(name, '-f', '../../deploy/roles.sql', '-f', '../../deploy/control.sql')
  const file = `${demo.dir}/${name}.yaml`
  writeFileSync(file, `http: {listen: "127.0.0.1:0"}
control: {dsn: "${dsn('noisegate', name)}", owner_dsn: "${dsn('noisegate_owner', name)}"}
auth: ${options.auth}
datasets:
  census:
    dsn: "${dsn('noisegate_reader', 'noisegate_demo_census')}"
    ${options.stewards ? `steward_keys_file: ${options.stewards}` : ''}
`)
  execFileSync(program, ['migrate', `--config=${file}`], { stdio: ['ignore', 'ignore', 'inherit'] })
  if (options.policy) execFileSync(program, ['policy', 'apply', options.policy, `--config=${file}`], { stdio: ['ignore', 'ignore', 'inherit'] })
  const child = spawn(program, ['serve', `--config=${file}`], { stdio: ['ignore', 'ignore', 'pipe'] })
  const ended = new Promise<void>(resolve => child.once('exit', () => resolve()))
  const address = await new Promise<string>((resolve, reject) => {
    const said: string[] = []
    createInterface(child.stderr).on('line', line => {
      said.push(line)
      try {
        const entry = JSON.parse(line)
        if (entry.msg === 'listening') resolve(entry.address)
      } catch { /* what is no line of the log is shown if the gateway ends */ }
    })
    child.once('exit', code => reject(new Error(`noisegate serve ended with ${code}: ${said.join('\n')}`)))
    child.once('error', reject)
  })
  return { http: `http://${address}`, stop: async () => { child.kill('SIGTERM'); await ended } }
}
