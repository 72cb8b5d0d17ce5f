import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { readFileSync, rmSync, writeFileSync } from 'node:fs'
import { createServer } from 'node:net'
import { join } from 'node:path'
import { expect, test } from 'vitest'
import { lockHolder, takeLock } from '../../scripts/lock.mjs'
import { root } from '../../scripts/root.mjs'
import { parseProcfile, planProcesses } from '../../scripts/supervisor/plan.ts'
import { eventually } from '../support/eventually.ts'
import { Clone, makeRunFolder, StartedStack } from './clone.ts'

function makeFolder() {
  const folder = makeRunFolder('lock-')
  return { path: join(folder, 'lock'), [Symbol.dispose]: () => rmSync(folder, { recursive: true }) }
}

test('a lock file names its owner, and the lock stays held until it is released', () => {
  using folder = makeFolder()
  const lock = takeLock(folder.path)
  expect(takeLock(folder.path)).toEqual({ holder: process.pid })
  lock.release!()
  expect(lockHolder(folder.path)).toBeUndefined()
  expect(takeLock(folder.path).release).toBeDefined()
})

test('exactly one of many processes takes over the lock file of a dead process', async () => {
  using folder = makeFolder()
  const code = `
    const { takeLock } = await import(${JSON.stringify(join(root, 'scripts/lock.mjs'))})
    process.stdin.once('data', () => {
      console.log(takeLock(${JSON.stringify(folder.path)}).holder === undefined ? 'won' : 'lost')
    }).once('end', () => process.exit())
    console.log('ready')`
  // The start time differs, so the pid was reused.
  writeFileSync(folder.path, `${process.pid} 1\n`)
  const racers = Array.from({ length: 8 }, () => {
    const child = spawn(process.execPath, ['--input-type=module', '-e', code], {
      stdio: ['pipe', 'pipe', 'inherit'],
    })
    const words: string[] = []
    child.stdout.setEncoding('utf8').on('data', (text: string) => words.push(...text.trim().split('\n')))
    return { child, words, exit: new Promise((resolve) => child.on('close', resolve)) }
  })
  await eventually(() => racers.every(({ words }) => words.includes('ready')), 10_000)
  for (const { child } of racers) child.stdin.write('go')
  await eventually(() => racers.every(({ words }) => words.length === 2), 10_000)
  for (const { child } of racers) child.stdin.end()
  await Promise.all(racers.map(({ exit }) => exit))
  expect(racers.filter(({ words }) => words.includes('won'))).toHaveLength(1)
})

test('a port setting does not default to a port that the user assigned to a different setting', async () => {
  const server = createServer().listen(0, '127.0.0.1')
  await once(server, 'listening')
  const { port } = server.address() as { port: number }
  await new Promise((closed) => server.close(closed))
  const settings = {
    ...{ counts: new Map<string, number>(), host: '127.0.0.1', internalHost: '127.0.0.1' },
    ports: {
      PORT: { first: port, isSet: false },
      INTERNAL_PORT: { first: port, isSet: true },
      RPC_PORT: { first: 0, isSet: false },
    },
  }
  const said: string[] = []
  const [api] = await planProcesses(new Map([['api', 'node api']]), settings, (line) => said.push(line))
  expect(api!.ports.INTERNAL_PORT).toBe(String(port))
  expect(Number(api!.ports.PORT)).toBeGreaterThan(port)
  expect(said).toEqual([`Port ${port} on 127.0.0.1 is not free. Using ${api!.ports.PORT} for PORT instead.`])
})

test('each Procfile line defines a process or the release command', () => {
  const { release, processes } = parseProcfile('# ours\nrelease: a b\n\nweb-1: c: d\n')
  expect(release).toBe('a b')
  expect([...processes]).toEqual([['web-1', 'c: d']])
  expect(() => parseProcfile('nonsense')).toThrow('invalid line: "nonsense"')
})

test('every npm script starts with a JavaScript file that old Node versions can run', () => {
  const { scripts } = JSON.parse(readFileSync(join(root, 'package.json'), 'utf8'))
  for (const command of Object.values(scripts)) expect(command).toMatch(/^exec node scripts\/[a-z]+\.mjs\b/)
})

test('scripts/run.mjs runs a script as the main module, with its arguments, stdin and exit code', async () => {
  await using clone = new Clone()
  const script = `
    for await (const text of process.stdin) console.log(import.meta.main, process.argv.slice(2), String(text))
    process.exitCode = 7`
  writeFileSync(join(clone.folder, 'own.ts'), script)
  const run = `echo typed | ${process.execPath} scripts/run.mjs own.ts --all x`
  const started = new StartedStack(clone.folder, ['/bin/sh', '-c', run], {})
  expect(await started.exit).toBe(7)
  expect(started.output).toBe("true [ '--all', 'x' ] typed\n\n")
})

test('running the client builds it if it has not been built yet', async () => {
  await using clone = new Clone()
  const client = new StartedStack(clone.folder, [process.execPath, 'cli/sandlot.mjs'], {})
  expect(await client.exit).toBe(0)
  expect(client.output).toBe('the client\n')
})
