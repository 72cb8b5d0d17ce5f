/**
 * A command of the client changes a file between any two steps of the script that writes or reads it: some order of the
 * two explains the answer and what is there afterwards. The script runs in bash, which tells before each step.
 */
import { execFile } from 'node:child_process'
import { createHash } from 'node:crypto'
import {
  existsSync,
  linkSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  rmSync,
  statSync,
  symlinkSync,
  writeFileSync,
} from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { problemOf } from '../../workers/files/file-script.ts'
import { writeScript } from '../../workers/files/place.ts'
import { rawScript, viewScript } from '../../workers/files/read.ts'

const first = 'first content\n'
const content = 'new content\n'
const sha256 = (text: string) => createHash('sha256').update(text).digest('hex')

interface Script {
  text: string
  args: string[]
  stdin: string
}

const write = (name: string, { mode = 'keep', overwrite = 'yes', match = '' } = {}): Script => ({
  text: writeScript,
  args: [name, mode, overwrite, match, sha256(content)],
  stdin: content,
})

const put = write('file')
const putByLink = write('link')
const putWithMode = write('file', { mode: '600' })
const putNew = write('file', { overwrite: 'no' })
const putWhereNoneIs = write('file', { overwrite: 'new' })
const putInPlaceOfMeant = write('file', { match: sha256(first) })
const view: Script = { text: viewScript, args: ['link', '1', 'all', '1000'], stdin: '' }
const get: Script = { text: rawScript, args: ['link', 'yes'], stdin: `1 ${first.length}\n` }

test.each([
  ['put by its link', putByLink, [], 'mkdir file'],
  ['put a new one', putNew, [], 'mkdir file'],
  ['put where there is none', putWhereNoneIs, ['file'], 'rm file'],
  ['view', view, [], 'mkdir file'],
  ['get', get, [], 'mkdir file'],
  ['put', put, ['file'], 'rm file'],
  ['put by its link', putByLink, ['file'], 'mv file moved'],
  ['view', view, ['file'], 'rm file'],
  ['get', get, ['file'], 'mv file moved'],
  ['put with a mode', putWithMode, ['file', 'hard'], 'rm file'],
  // What a command does between the last look and the rename is lost.
  ['put in place of the one that is meant', putInPlaceOfMeant, ['file'], 'rm file', 'may be lost'],
])('%s, at each step', async (_name, script, names, change, isLost?: string) => {
  const whole = ['before', 'after', ...(isLost ? ['never'] : [])] as const
  const explained = await Promise.all(whole.map((at) => outcomeOf(names, script, change, at as 'before')))
  const known = explained.map(({ found }) => found)
  const wrong: unknown[] = []
  let steps = 0
  for (let isOver = false; !isOver; ) {
    const some = Array.from({ length: atOnce }, () => ++steps)
    const outcomes = await Promise.all(some.map((step) => outcomeOf(names, script, change, step)))
    for (const [at, { found, isChanged }] of outcomes.entries())
      if (isChanged && !known.includes(found)) wrong.push({ step: some[at], found })
    isOver = !outcomes.at(-1)!.isChanged
  }
  expect({ wrong, known }).toEqual({ wrong: [], known })
  expect(steps).toBeGreaterThan(atOnce)
})

const atOnce = 8

let root: string
beforeAll(() => {
  root = mkdtempSync(join(tmpdir(), 'file-steps-'))
})
afterAll(() => rmSync(root, { recursive: true }))

const changeBefore = (step: number) => `
steps=0
before_step() {
  steps=$((steps + 1))
  if [ "$steps" -eq ${step} ]; then trap - DEBUG; : >"$CHANGED"; eval "$CHANGE" >/dev/null 2>&1; fi
}
set -T
trap before_step DEBUG
`

let folders = 0

/**
 * @param names of one file
 * @param at before which step the change is made
 */
async function outcomeOf(
  names: string[],
  script: Script,
  change: string,
  at: number | 'before' | 'after' | 'never',
) {
  const folder = join(root, String(folders++))
  mkdirSync(folder)
  symlinkSync('file', join(folder, 'link'))
  const [one, ...others] = names.map((name) => join(folder, name))
  if (one) writeFileSync(one, first)
  for (const other of others) linkSync(one!, other)
  const changed = `${folder}.changed`
  const bash = (line: string, args: string[] = [], stdin = '') => {
    const env = { PATH: process.env.PATH, LC_ALL: 'C', QUOTING_STYLE: 'literal', HOME: folder }
    const options = { cwd: folder, env: { ...env, CHANGE: change, CHANGED: changed } }
    return new Promise<{ status: number; stdout: string; stderr: string }>((resolve) => {
      const child = execFile('bash', ['-c', line, 'sh', ...args], options, (error, stdout, stderr) =>
        resolve({ status: error ? Number(error.code) : 0, stdout, stderr }),
      )
      // A script that refuses does not read it.
      child.stdin!.on('error', () => {})
      child.stdin!.end(stdin)
    })
  }
  if (at === 'before') await bash(change)
  const [name = '', ...args] = script.args
  const text = (typeof at === 'number' ? changeBefore(at) : '') + script.text
  const end = await bash(text, [join(folder, name), ...args], script.stdin)
  if (at === 'after') await bash(change)
  const told = end.status === 0 ? end.stdout : problemOf(end.status, end.stderr).code
  return { found: JSON.stringify({ told, after: look(folder) }), isChanged: existsSync(changed) }
}

const look = (folder: string) =>
  readdirSync(folder, { withFileTypes: true }).map((entry) => {
    const path = join(folder, entry.name)
    const mode = statSync(path, { throwIfNoEntry: false })?.mode.toString(8)
    return [entry.name, mode, entry.isFile() && readFileSync(path, 'utf8')]
  })
