/** `npm start` in a small clone, with real databases and stubs for API and worker. */
import { existsSync, mkdirSync, readdirSync, readFileSync, rmSync, statSync, writeFileSync } from 'node:fs'
import { createServer } from 'node:net'
import { join } from 'node:path'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { postgresUrl } from '../../scripts/services/postgres.ts'
import { makeOrm } from '../../shared/data/database.ts'
import { describeConcurrently } from '../support/describe-concurrently.ts'
import { eventually } from '../support/eventually.ts'
import { Clone, makeRunFolder, type StartedStack, startedBefore, usualProcfile } from './clone.ts'

async function query(clone: Clone, sql: string) {
  const orm = makeOrm(postgresUrl(join(clone.folder, '.data', 'run')))
  try {
    return await orm.em.execute(sql)
  } finally {
    await orm.close(true)
  }
}

/** Shares one stack among the tests of a group. */
function shareStack(procfile?: string, environmentIn: (clone: Clone) => Record<string, string> = () => ({})) {
  let shared: { clone: Clone; stack: StartedStack }
  beforeAll(async () => {
    const clone = await startedBefore(procfile)
    shared = { clone, stack: clone.start(environmentIn(clone)) }
  })
  afterAll(() => shared?.clone[Symbol.asyncDispose]())
  return () => shared
}

/** Kubeconfig of a cluster that does not exist. */
const nowhere = {
  clusters: [{ name: 'nowhere', cluster: { server: 'https://127.0.0.1:1' } }],
  users: [{ name: 'nobody', user: { token: 'none' } }],
  contexts: [{ name: 'nowhere', context: { cluster: 'nowhere', user: 'nobody' } }],
  'current-context': 'nowhere',
}

// Concurrent, because the tests mostly wait and use separate clones.
describeConcurrently('a first start', () => {
  test('`npm start` runs the release command and then starts all processes', async () => {
    await using clone = new Clone()
    const stack = clone.start()
    const [, url] = await stack.ready()
    expect(await (await fetch(url!)).text()).toBe('hello')
    await stack.waitForOutput(/worker {2}\| worker listens/)
    expect(stack.output.indexOf('released')).toBeLessThan(stack.output.indexOf('listens'))
    expect(stack.output).toContain(
      `npx sandlot signup --url ${url}\n  npx sandlot session create\n  npx sandlot exec -- echo hello\n`,
    )
    expect(existsSync(join(clone.folder, 'cli', 'dist', 'main.js'))).toBe(true)
  })

  test('Ctrl-C stops all processes and keeps the data and secrets', async () => {
    await using clone = new Clone()
    const data = (name: string) => join(clone.folder, '.data', name)
    const first = clone.start()
    await first.ready()
    await first.waitForOutput(/worker listens/)
    await query(clone, 'create table kept (word text)')
    const secret = readFileSync(data('jwt-secret'), 'utf8')
    first.child.kill('SIGINT')
    expect(await first.exit).toBe(0)
    expect(first.output).toMatch(/api stops[\s\S]*worker stops|worker stops[\s\S]*api stops/)
    await clone.untilNothingRuns(1000)

    const second = clone.start()
    await second.ready()
    expect(await query(clone, 'select * from kept')).toEqual([])
    expect(readFileSync(data('jwt-secret'), 'utf8')).toBe(secret)
    expect(statSync(data('jwt-secret')).mode & 0o777).toBe(0o600)
    expect(statSync(data('secrets-key')).mode & 0o777).toBe(0o600)
    expect(statSync(data('')).mode & 0o777).toBe(0o700)
  })

  test.each(['PORT', 'INTERNAL_PORT', 'RPC_PORT'])(
    'reports that %s is already in use before any process starts',
    async (setting) => {
      const server = createServer()
      await new Promise<void>((listening) => server.listen(0, '127.0.0.1', listening))
      const { port } = server.address() as { port: number }
      try {
        await using clone = new Clone()
        const stack = clone.start({ [setting]: String(port) })
        expect(await stack.exit).toBe(1)
        expect(stack.output).toContain(`Port ${port} on 127.0.0.1 is not free. Choose a different port:`)
        const [, other] = stack.output.match(new RegExp(`  ${setting}=(\\d+) npm start`))!
        expect(Number(other)).toBeGreaterThan(port)
        expect(existsSync(join(clone.folder, '.data', 'postgres'))).toBe(false)
      } finally {
        server.close()
      }
    },
  )

  test('an unusable cluster is reported before any process starts', async () => {
    await using clone = new Clone()
    const stack = clone.start({ KUBECONFIG: join(clone.folder, 'none') })
    expect(await stack.exit).toBe(2)
    expect(stack.output).toContain('KUBECONFIG cannot be read')
    expect(existsSync(join(clone.folder, '.data', 'postgres'))).toBe(false)
  })

  test('`kill -9` of the stack leaves no processes running', async () => {
    await using clone = await startedBefore()
    const first = clone.start()
    await first.ready()
    expect(clone.processes().length).toBeGreaterThan(5)
    process.kill(clone.stackPid(), 'SIGKILL')
    await first.exit
    const second = clone.start()
    await second.ready()
    process.kill(clone.stackPid(), 'SIGKILL')
    await clone.untilNothingRuns(5000)
  })

  test('`kill -9` of npm stops all processes of the stack', async () => {
    await using clone = await startedBefore()
    const stack = clone.start({}, ['npm', 'start'])
    await stack.ready()
    stack.child.kill('SIGKILL')
    await stack.waitForOutput(/api stops/)
    await clone.untilNothingRuns(5000)
  })

  test('SIGTERM leaves no processes running, even while the databases are starting', async () => {
    await using clone = new Clone()
    const stack = clone.start()
    const isAlive = (name: string) => existsSync(join(clone.folder, '.data', name))
    await eventually(() => isAlive('postgres.new') || isAlive('postgres'), 30_000)
    stack.child.kill('SIGTERM')
    await stack.exit
    await clone.untilNothingRuns(5000)
    const again = clone.start()
    await again.ready()
  })
})

describeConcurrently('a later start', () => {
  describe('a running stack', () => {
    const shared = shareStack()

    test('a second start in the same clone fails and does not affect the running stack', async () => {
      const { clone, stack } = shared()
      const [, url] = await stack.ready()
      const second = clone.start()
      expect(await second.exit).toBe(1)
      expect(second.output).toContain(`is already running in this folder (process ${clone.stackPid()})`)
      expect(await query(clone, 'select 1 as one')).toEqual([{ one: 1 }])
      expect((await fetch(url!)).status).toBe(200)
    })

    test('a process or database that dies is restarted', async () => {
      const { clone, stack } = shared()
      await stack.ready()
      const [, worker] = await stack.waitForOutput(/worker listens (\d+)/)
      process.kill(Number(worker), 'SIGKILL')
      await stack.waitForOutput(/worker exited \(SIGKILL\)\. Restarting it in 0.5 s\.[\s\S]*worker listens/)

      const pidFile = join(clone.folder, '.data', 'postgres', 'postmaster.pid')
      const [postgres] = readFileSync(pidFile, 'utf8').split('\n')
      process.kill(Number(postgres), 'SIGKILL')
      await stack.waitForOutput(/postgres exited \(SIGKILL\)\. Restarting it/)
      await eventually(() => query(clone, 'select 1 as one'), 10_000)
    })
  })

  test('no process starts if the release command fails', async () => {
    await using clone = await startedBefore(usualProcfile.replace('echo released', 'echo no good; exit 3'))
    const stack = clone.start()
    expect(await stack.exit).toBe(1)
    expect(stack.output).toContain('release | no good')
    expect(stack.output).toContain('release failed (exit code 3)')
    expect(stack.output).not.toContain('listens')
    await clone.untilNothingRuns(5000)
  })

  test('a process with invalid settings is not restarted, and `npm start` exits with status 2', async () => {
    await using clone = await startedBefore(
      usualProcfile.replace('node stub.mjs worker', 'echo SANDBOX_MEMORY is odd; exit 2'),
    )
    const stack = clone.start()
    expect(await stack.exit).toBe(2)
    expect(stack.output).toContain('worker  | SANDBOX_MEMORY is odd')
    expect(stack.output).toContain('worker reports invalid settings (exit code 2)')
    expect(stack.output).not.toContain('Restarting it')
    await clone.untilNothingRuns(5000)
  })

  describe('environments', () => {
    const names = 'env | grep -o "^[A-Z_]*\\(KEY\\|SECRET\\)=" | sort | tr -d "\\n"'
    const show = (name: string) => `echo ${name} has "[$(${names})]", cluster "[$KUBECONFIG]"`
    const print = (name: string) => `sh -c '${show(name)}; exec node stub.mjs ${name}'`
    const procfile = `release: sh -c '${show('release')}'\napi: ${print('api')}\nworker: ${print('worker')}\n`
    const shared = shareStack(procfile, (clone) => {
      const kubeconfig = join(clone.folder, 'kubeconfig')
      // The start continues if the cluster does not respond.
      writeFileSync(kubeconfig, JSON.stringify(nowhere))
      return { KUBECONFIG: kubeconfig }
    })

    test('only workers receive the cluster credential', async () => {
      const { stack } = shared()
      await stack.waitForOutput(/worker has .*, cluster \[.*\/kubeconfig\]/)
      await stack.waitForOutput(/api has .*, cluster \[\]/)
    })

    test('each kind of process receives only its own keys', async () => {
      const { stack } = shared()
      await stack.waitForOutput(/worker has \[RPC_KEY=SECRETS_KEY=\]/)
      await stack.waitForOutput(/api has \[JWT_SECRET=RPC_KEY=SECRETS_PUBLIC_KEY=\]/)
      await stack.waitForOutput(/release has \[\]/)
    })
  })

  test('`npm start` gives additional workers and APIs their own names and ports', async () => {
    await using clone = await startedBefore()
    writeFileSync(join(clone.folder, '.env'), 'APIS=2\nWORKERS=7\n')
    const stack = clone.start({}, [process.execPath, 'scripts/start.mjs', '--workers', '2'])
    await stack.ready()
    for (const name of ['api.1', 'api.2', 'worker.1', 'worker.2'])
      await stack.waitForOutput(new RegExp(`^${name} +\\| \\w+ listens`, 'm'))
  })

  test('`npm start` works in a clone whose path contains spaces', async () => {
    const parent = makeRunFolder('beside-')
    try {
      mkdirSync(join(parent, 'my'))
      await using clone = new Clone(usualProcfile, join(parent, 'my own clone'))
      const stack = clone.start()
      await stack.ready()
      expect(await query(clone, 'select 1 as one')).toEqual([{ one: 1 }])
      stack.child.kill('SIGKILL')
      await clone.untilNothingRuns(5000)
      expect(readdirSync(parent).sort()).toEqual(['my', 'my own clone'])
      expect(existsSync(join(clone.folder, '.data', 'run'))).toBe(false)
    } finally {
      rmSync(parent, { recursive: true, force: true })
    }
  })

  test('a clone with a long path keeps its sockets in a different folder', async () => {
    const long = makeRunFolder('long'.repeat(25))
    await using clone = await startedBefore(
      usualProcfile.replace('echo released', 'echo $DATABASE_URL'),
      long,
    )
    const stack = clone.start()
    const [, folder] = await stack.waitForOutput(/host=(\S+)&/)
    await stack.ready()
    expect(folder).toMatch(/^\/tmp\/sandlot-\d+-[0-9a-f]{12}$/)
    expect(statSync(folder!).mode & 0o777).toBe(0o700)
    stack.child.kill('SIGTERM')
    await stack.exit
    await clone.untilNothingRuns(1000)
    expect(existsSync(folder!)).toBe(false)
  })
})
