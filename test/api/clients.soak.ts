/** Tests clients generated from `/v1/openapi.json`. Needs package registries and a Python with `venv`. */
import { execFile } from 'node:child_process'
import { copyFileSync, mkdirSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { promisify } from 'node:util'
import { build } from 'esbuild'
import { expect, test } from 'vitest'
import { endpoints } from '../../shared/contract/index.ts'
import { shareWorld } from '../support/shared.ts'

const world = shareWorld()
const names = Object.keys(endpoints)
const here = import.meta.dirname
const installMs = 480_000

const run = async (folder: string, file: string, ...args: string[]): Promise<string> => {
  // The generator looks for its formatter next to the Python executable.
  const env = { ...process.env, PATH: `${join(folder, 'venv/bin')}:${process.env.PATH}` }
  const options = { cwd: folder, env, maxBuffer: 64 * 1024 * 1024 }
  const { stdout } = await promisify(execFile)(file, args, options).catch((error) => {
    throw new Error(`${file} ${args.join(' ')}: ${error.stdout}${error.stderr}`)
  })
  return stdout
}

async function folderWithDocument(name: string): Promise<string> {
  const folder = join(world.folder, name)
  mkdirSync(folder, { recursive: true })
  const answer = await fetch(`${world.url()}/v1/openapi.json`)
  writeFileSync(join(folder, 'openapi.json'), await answer.text())
  return folder
}

/** The script prints the operations that it used on its last line. */
const doneOf = (printed: string): string[] => JSON.parse(printed.trim().split('\n').at(-1)!)

const modules = {
  target: 'esnext',
  module: 'esnext',
  moduleResolution: 'bundler',
  lib: ['esnext', 'dom', 'dom.iterable'],
}

const camel = (name: string) => name.replace(/_(\w)/g, (_, letter: string) => letter.toUpperCase())

test('a generated TypeScript client can call every operation', {
  timeout: installMs,
}, async () => {
  const folder = await folderWithDocument('typescript')
  writeFileSync(join(folder, 'package.json'), '{"private":true,"type":"module"}')
  const packages = ['@hey-api/openapi-ts@0.95', 'typescript@5']
  await run(folder, 'npm', 'install', '--no-audit', '--no-fund', '--ignore-scripts', ...packages)
  await run(folder, join(folder, 'node_modules/.bin/openapi-ts'), '-i', 'openapi.json', '-o', 'sdk')
  const compilerOptions = { strict: true, noEmit: true, skipLibCheck: true, types: [], ...modules }
  writeFileSync(join(folder, 'tsconfig.json'), JSON.stringify({ compilerOptions, include: ['sdk'] }))
  await run(folder, join(folder, 'node_modules/.bin/tsc'), '-p', '.')

  copyFileSync(join(here, 'generated/operations.mjs'), join(folder, 'operations.mjs'))
  const entryPoints = [join(folder, 'operations.mjs')]
  const outfile = join(folder, 'bundle.mjs')
  await build({ entryPoints, outfile, bundle: true, platform: 'node', format: 'esm' })
  const printed = await run(folder, process.execPath, outfile, world.url(), 'typescript@example.com')
  expect([...new Set(doneOf(printed))].sort()).toEqual(names.toSorted())
})

test('a generated Python client can call every operation', { timeout: installMs }, async () => {
  const folder = await folderWithDocument('python')
  await run(folder, 'python3', '-m', 'venv', 'venv')
  const bin = join(folder, 'venv/bin')
  await run(folder, join(bin, 'pip'), 'install', '--quiet', 'openapi-python-client==0.29.*', 'ruff')
  const options = ['--path', 'openapi.json', '--output-path', 'sdk', '--meta', 'none']
  await run(folder, join(bin, 'openapi-python-client'), 'generate', ...options, '--fail-on-warning')

  copyFileSync(join(here, 'generated/operations.py'), join(folder, 'operations.py'))
  const printed = await run(folder, join(bin, 'python'), 'operations.py', world.url(), 'python@example.com')
  expect([...new Set(doneOf(printed).map(camel))].sort()).toEqual(names.toSorted())
})
