// node-postgres: parameters, named statements, cursor, binary, notices.
const fs = require('fs')
const { Client, Pool, types } = require('pg')

const BY_REGION = 'SELECT region, count(*) AS n, avg(amount) AS mean FROM visits GROUP BY region ORDER BY region'
const REGIONS = ['East', 'North', 'South', 'West']
const PEOPLE = 40000
const ssl = process.env.PGSSLMODE === 'disable' ? false : { ca: fs.readFileSync(process.env.PGSSLROOTCERT), rejectUnauthorized: true, servername: 'localhost' }
const config = { host: process.env.PGHOST, ssl, options: process.env.PGOPTIONS }

let failures = 0
async function check (name, work) {
  try {
    await work()
    console.log('ok', name)
  } catch (e) {
    failures++
    console.log('FAIL', name, e.message, e.code || '', String(e.stack).split('\n')[1])
  }
}
function assert (holds, detail) {
  if (!holds) throw new Error('not so: ' + JSON.stringify(detail))
}
function near (n, expected, off = 4000) {
  assert(Math.abs(Number(n) - expected) <= off, [n, expected])
}

async function main () {
  const client = new Client(config)
  const notices = []
  client.on('notice', n => notices.push(n))
  await client.connect()
  const ask = async (...a) => (await client.query(...a)).rows
  const budget = async () => Number((await ask('SHOW noisegate.budget'))[0]['noisegate.budget'].split(' ')[1])
  const refused = async (code, ...a) => {
    let error
    try { await client.query(...a) } catch (e) { error = e }
    assert(error && error.code === code, error ? [error.code, error.message] : 'answered')
    return error
  }

  let rows
  await check('rows and types', async () => {
    const r = await client.query(BY_REGION)
    rows = r.rows
    assert(JSON.stringify(rows.map(x => x.region)) === JSON.stringify(REGIONS), rows)
    assert(JSON.stringify(r.fields.map(f => [f.name, f.dataTypeID])) === '[["region",25],["n",20],["mean",1700]]', r.fields)
    assert(r.command === 'SELECT' && r.rowCount === 4, r.command)
    rows.forEach(x => near(x.n, PEOPLE / 4, 9900))
  })
  await check('the notice of a charge', async () => {
    assert(notices.length === 1 && notices[0].message.includes('spent ε 0.1; ε 29.9 left') && notices[0].severity === 'NOTICE', notices)
  })
  await check('a replay is free', async () => {
    const before = await budget()
    assert(JSON.stringify(await ask(BY_REGION)) === JSON.stringify(rows) && before === await budget() && notices.length === 2, notices)
    assert(notices[1].message.includes('a replay of ') && notices[1].message.includes('spent nothing; ε 29.9 left'), notices)
    assert(notices[1].severity === 'NOTICE' && notices[1].detail.endsWith('later rows are not in it; latest costs ε 0.1'), notices)
  })
  await check('parameters', async () => {
    near((await ask('SELECT count(*) AS n FROM visits WHERE region = $1 AND day >= $2 AND amount < $3', ['East', '2025-01-01', 499.5]))[0].n, PEOPLE / 4)
  })
  await check('a Date as parameter', async () => {
    near((await ask('SELECT count(*) AS n FROM visits WHERE day >= $1', [new Date(Date.UTC(2025, 0, 1))]))[0].n, PEOPLE)
  })
  await check('a parameter is its constant', async () => {
    const one = (await ask('SELECT count(*) AS n FROM people WHERE age >= 40'))[0].n
    const before = await budget()
    assert((await ask('SELECT count(*) AS n FROM people WHERE age >= $1', [40]))[0].n === one && before === await budget())
  })
  await check('a named statement', async () => {
    for (let i = 0; i < 3; i++) near((await ask({ name: 'aged', text: 'SELECT count(*) AS n FROM people WHERE age >= $1', values: [17] }))[0].n, PEOPLE)
  })
  await check('an array as parameter', async () => {
    near((await ask('SELECT count(*) AS n FROM visits WHERE region = ANY($1)', [['East', 'West']]))[0].n, PEOPLE / 2)
  })
  await check('a NULL as parameter', async () => {
    await ask('SELECT count(*) AS n FROM visits WHERE region = $1', [null])
  })
  await check('rows as arrays', async () => {
    assert((await ask({ text: BY_REGION, rowMode: 'array' }))[0][0] === 'East')
  })
  await check('dates as keys', async () => {
    const months = await ask("SELECT date_trunc('month', day) AS month, count(*) AS n FROM visits GROUP BY 1 ORDER BY 1")
    assert(months.length === 12 && months[11].month instanceof Date && months[11].month.getMonth() === 11, months)
  })
  await check('several statements', async () => {
    const r = await client.query('SELECT 1 AS one; SELECT count(*) AS n FROM people WHERE age >= 40; SELECT 3 AS three')
    assert(r.length === 3 && r[2].rows[0].three === 3, r)
  })
  await check('rows of people are refused', async () => {
    const before = await budget()
    const e = await refused('42501', 'SELECT age FROM people')
    assert(e.detail === 'policy/not-aggregate' && e.hint && Number(e.position) > 0 && e.severity === 'ERROR', e)
    assert(before === await budget())
  })
  await check('the same with parameters', async () => {
    await refused('42501', 'SELECT age FROM people WHERE sex = $1', ['Male'])
  })
  await check('an unknown table', async () => { await refused('42P01', 'SELECT count(*) FROM nothing') })
  await check('writing is refused', async () => { await refused('25006', 'DELETE FROM people WHERE age = $1', [40]) })
  await check('transactions', async () => {
    await ask('BEGIN')
    await refused('42501', 'SELECT age FROM people')
    await refused('25P02', 'SELECT 1')
    await ask('ROLLBACK')
    assert((await ask('SELECT 1 AS one'))[0].one === 1)
  })
  await check('a cursor', async () => {
    const Cursor = require('pg-cursor')
    const cursor = client.query(new Cursor(BY_REGION))
    const first = await cursor.read(3)
    const rest = await cursor.read(3)
    assert(first.length === 3 && rest.length === 1 && JSON.stringify(first.concat(rest)) === JSON.stringify(rows), [first, rest])
    await cursor.close()
  })
  await check('a cursor that is closed early', async () => {
    const Cursor = require('pg-cursor')
    const cursor = client.query(new Cursor('SELECT count(*) AS n FROM people WHERE age >= $1', [17]))
    await cursor.close()
    assert((await ask('SELECT 1 AS one'))[0].one === 1)
  })
  await check('a pool', async () => {
    const pool = new Pool({ ...config, max: 3 })
    const got = await Promise.all(Array.from({ length: 6 }, () => pool.query(BY_REGION)))
    assert(got.every(r => JSON.stringify(r.rows) === JSON.stringify(rows)))
    await pool.end()
  })
  await check('the tables of the catalog', async () => {
    const t = await ask('SELECT table_name FROM information_schema.tables WHERE table_schema = $1 ORDER BY 1', ['public'])
    assert(JSON.stringify(t.map(x => x.table_name)) === '["people","regions","visits"]', t)
  })
  await check('probes of Knex, Sequelize and TypeORM', async () => {
    assert((await ask('select version();'))[0].version.startsWith('PostgreSQL'))
    assert((await ask('SHOW SERVER_VERSION'))[0].server_version)
    assert((await ask('SELECT * FROM current_schema()'))[0].current_schema === 'public')
    assert((await ask('SELECT 1+1 AS result'))[0].result === 2)
    await ask("SELECT typname, typtype, oid, typarray FROM pg_type WHERE (typtype = 'b' AND typname IN ('hstore', 'geometry')) OR (typtype = 'e')")
  })
  await check('settings', async () => {
    await ask("SET client_min_messages TO warning; SET TIME ZONE 'UTC'; SET noisegate.epsilon = '0.02'")
    const before = await budget()
    await ask('SELECT sum(age) AS s FROM people')
    assert(Math.abs(before - await budget() - 0.02) < 1e-9 && notices.length > 0)
  })
  await client.end()
  await check('a wrong token', async () => {
    const wrong = new Client({ ...config, password: 'wrong' })
    let code
    try { await wrong.connect() } catch (e) { code = e.code }
    assert(code === '28P01', code)
  })
  process.exit(failures > 0 ? 1 : 0)
}

main().catch(e => { console.log('FAIL', e.stack); process.exit(1) })
