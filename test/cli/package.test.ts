import { execFileSync, spawnSync } from 'node:child_process'
import { mkdirSync, mkdtempSync, readdirSync, readFileSync, rmSync, statSync } from 'node:fs'
import { isBuiltin } from 'node:module'
import { tmpdir } from 'node:os'
import { delimiter, dirname, join } from 'node:path'
import { build, stop } from 'esbuild'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { root } from '../../scripts/root.mjs'
import { shareWorld } from '../support/shared.ts'
import { clientPath, Home, runProcess } from './client.ts'
import { openTerminal } from './terminal.ts'
import { makeUsers } from './users.ts'

const read = (path: string) => JSON.parse(readFileSync(join(root, path), 'utf8'))
const folder = mkdtempSync(join(tmpdir(), 'sandlot-package-'))
const empty = join(folder, 'empty')
const installed = join(empty, 'node_modules', 'sandlot')
let tarball = ''
let packed: string[] = []

/** Runs npm offline, so that missing dependencies cause a failure. */
function npm(...args: string[]): string {
  const env = { PATH: process.env.PATH ?? '', HOME: folder, npm_config_offline: 'true' }
  return execFileSync('npm', args, { cwd: empty, env, encoding: 'utf8', stdio: ['ignore', 'pipe', 'pipe'] })
}

beforeAll(() => {
  mkdirSync(empty)
  const [made] = JSON.parse(npm('pack', '--json', '--ignore-scripts', join(root, 'cli')))
  packed = made.files.map(({ path }: { path: string }) => path)
  tarball = join(empty, made.filename)
  npm('install', '--no-audit', '--no-fund', tarball)
})
afterAll(async () => {
  await stop()
  rmSync(folder, { recursive: true, force: true })
})

test("the package has the project's version and license and cannot be published", () => {
  const manifest = read('cli/package.json')
  const { version, license } = read('package.json')
  expect(manifest).toMatchObject({ version, license })
  expect(manifest).toMatchObject({ name: 'sandlot', engines: { node: '>=20.12' }, private: true })
  expect(manifest).not.toHaveProperty('dependencies')
  expect(manifest).not.toHaveProperty('scripts')
})

test('the package contains only built files', () => {
  const parts = packed.filter((path) => !/^dist\/[\w-]+\.js$/.test(path))
  expect(parts.sort()).toEqual(['README.md', 'dist/LICENSE', 'dist/THIRD-PARTY.txt', 'package.json'])
  expect(packed).toContain('dist/main.js')
  const modules = readdirSync(join(empty, 'node_modules'))
  expect(modules.filter((name) => !name.startsWith('.'))).toEqual(['sandlot'])
})

test('the package imports only built-in modules and its own files', async () => {
  // esbuild fails on all other modules, because none are installed.
  const { metafile } = await build({
    entryPoints: [join(installed, 'dist', 'main.js')],
    bundle: true,
    format: 'esm',
    platform: 'node',
    write: false,
    metafile: true,
    logLevel: 'silent',
  })
  expect(Object.keys(metafile.inputs).length).toBe(packed.filter((path) => path.endsWith('.js')).length)
  const wanted = Object.values(metafile.inputs).flatMap(({ imports }) => imports)
  const outside = wanted.filter(({ external }) => external).map(({ path }) => path)
  expect(outside.filter((name) => !isBuiltin(name))).toEqual([])
})

test('the package contains the license of each bundled package', () => {
  const notice = readFileSync(join(installed, 'dist', 'THIRD-PARTY.txt'), 'utf8')
  const sources = readdirSync(join(root, 'cli'), { recursive: true, encoding: 'utf8' })
    .filter((path) => /\.tsx?$/.test(path))
    .map((path) => readFileSync(join(root, 'cli', path), 'utf8'))
  const imports =
    /(?:^(?:import|export) (?!type\b)[^'"]*?from |\bimport\()'((?:@[\w-]+\/)?[\w-][\w.-]*)(?:\/[^']*)?'/gm
  const used = new Set(sources.flatMap((text) => [...text.matchAll(imports)].map(([, name]) => name!)))
  // Packages that only re-export others leave nothing in the bundle.
  used.delete('@inquirer/prompts')
  const { dependencies, devDependencies } = read('package.json')
  const packages = [...used].filter((name) => name in { ...dependencies, ...devDependencies })
  expect(packages).toEqual(expect.arrayContaining(['commander', 'ink', 'react', 'smol-toml', 'ws']))
  const named = [...notice.matchAll(/^(\S+) \d\S* \(.+\)$/gm)].map(([, name]) => name)
  expect(named).toEqual(expect.arrayContaining([...packages, '@inquirer/password']))
  expect(notice).toContain('Permission is hereby granted')
})

test('the installed package runs without the repository, and `mcp init` prints the path of that installation', async () => {
  using home = new Home()
  const program = join(empty, 'node_modules', '.bin', 'sandlot')
  expect(statSync(program).mode & 0o111).not.toBe(0)
  // Uses the Node version of the user's PATH.
  const env = home.environment({ PATH: `${dirname(process.execPath)}:${process.env.PATH}` })
  const run = (...args: string[]) => runProcess(program, args, env)
  expect(await run('--version')).toMatchObject({ code: 0, stdout: `${read('package.json').version}\n` })
  expect(await run('config', 'set-url', 'http://127.0.0.1:1')).toMatchObject({ code: 0 })
  expect(await run('config', 'set-key', `sandlot_live_${'x'.repeat(49)}`)).toMatchObject({ code: 0 })
  expect((await run('session', 'ls', '--json')).json().error).toMatchObject({ code: 'network', exit_code: 8 })
  expect(await run('files', '--help')).toMatchObject({ code: 0, stderr: '' })
  const entry = (await run('mcp', 'init', 'cursor', '--print')).json().mcpServers.sandlot
  expect(entry.args[0]).toBe(join(installed, 'dist', 'main.js'))
})

test('on an older Node version, the client prints an error that names the required version', async () => {
  using home = new Home()
  const older = 'data:text/javascript,Object.defineProperty(process.versions, "node", { value: "20.11.1" })'
  const main = join(installed, 'dist', 'main.js')
  for (const args of [['--version'], ['doctor'], ['session', 'ls']]) {
    const ran = await runProcess(process.execPath, ['--import', older, main, ...args], home.environment())
    const stderr = 'sandlot: Node 20.12 or later is required, and this is Node 20.11.1.\n'
    expect(ran).toMatchObject({ code: 1, stdout: '', stderr })
  }
})

/** Path to Node 20: SANDLOT_NODE_20 or the first match in PATH. */
const oldNode = [
  process.env.SANDLOT_NODE_20,
  ...(process.env.PATH ?? '').split(delimiter).map((path) => join(path, 'node')),
].find((node) => node && spawnSync(node, ['--version']).stdout?.toString().startsWith('v20.'))

describe.skipIf(!oldNode)('the package on Node 20', () => {
  const world = shareWorld()
  const { newUser } = makeUsers(world)
  const main = join(installed, 'dist', 'main.js')

  async function newUserOfNode20() {
    const { home } = await newUser()
    const env = home.environment({ NODE_USE_ENV_PROXY: '1', HTTPS_PROXY: 'http://127.0.0.1:1' })
    const run = (...args: string[]) => runProcess(oldNode!, [main, ...args], env)
    const open = (...args: string[]) => openTerminal([oldNode!, main, ...args], home.environment())
    return { home, run, open, [Symbol.dispose]: () => home[Symbol.dispose]() }
  }

  test('sessions, streaming commands, files and the MCP server work on Node 20', async () => {
    using user = await newUserOfNode20()
    expect(await user.run('doctor')).toMatchObject({ code: 0, stderr: '' })
    const elsewhere = ['--url', 'https://127.0.0.1:1', '--api-key', `sandlot_live_${'x'.repeat(49)}`]
    expect(await user.run('doctor', ...elsewhere)).toMatchObject({
      code: 1,
      stdout: expect.stringContaining('it does not support NODE_USE_ENV_PROXY'),
    })
    await user.run('mcp', 'init', 'cursor')
    const works = expect.stringMatching(/works\n$/)
    expect(await user.run('mcp', 'doctor')).toMatchObject({ code: 0, stdout: works })
    const once = ['session', 'create', '--rm', '--', 'sh', '-c', 'echo hello; exit 3']
    expect(await user.run(...once)).toMatchObject({ code: 3, stdout: 'hello\n' })
    await user.run('session', 'create')
    expect(await user.run('files', 'put', main, 'main.js')).toMatchObject({ code: 0 })
    const got = await user.run('files', 'get', 'main.js', '-')
    expect(got.stdout).toBe(readFileSync(main, 'utf8'))
    expect(await user.run('__complete', '--', 'session', '')).toMatchObject({ code: 0, stderr: '' })
    expect(await user.run('session', 'rm', '--yes')).toMatchObject({ code: 0 })
  })

  test('terminals and the picker work on Node 20', async () => {
    using user = await newUserOfNode20()
    const { stdout: id } = await user.run('session', 'create', '--name', 'by-node-20')
    const shell = user.open('exec', '-it', '--', 'sh')
    shell.type('echo $((20 + 22)); exit 5\n')
    await shell.shows('42')
    expect(await shell.ended).toBe(5)
    const picker = user.open()
    await picker.shows('by-node-20')
    picker.type('q')
    expect(await picker.ended).toBe(0)
    expect(await user.run('session', 'rm', '--yes', id.trim())).toMatchObject({ code: 0 })
  })
})

test('the package does not contain a compile cache, even if the client has run in the package folder', async () => {
  using home = new Home()
  expect(await home.run(['config', 'show'])).toMatchObject({ code: 0 })
  const [made] = JSON.parse(npm('pack', '--json', '--dry-run', '--ignore-scripts', join(root, 'cli')))
  const names = made.files.map(({ path }: { path: string }) => path)
  expect(readdirSync(dirname(clientPath))).toContain('cache')
  expect(names.filter((path: string) => path.includes('cache'))).toEqual([])
})
