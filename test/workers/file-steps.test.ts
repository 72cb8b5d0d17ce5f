/**
 * A command changes a file between any two steps of the script that checks or changes files.
 * The result must match some sequential order. A DEBUG trap in bash reports each step.
 */
import { execFile, spawn } from 'node:child_process'
import { createHash } from 'node:crypto'
import { once } from 'node:events'
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
import { exits, problemOf } from '../../workers/files/file-script.ts'
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

const view: Script = { text: viewScript, args: ['link', '1', 'all', '1000'], stdin: '' }
const get: Script = { text: rawScript, args: ['link', 'yes'], stdin: `1 ${first.length}\n` }

test.concurrent.each([
  ['write through a dangling link', write('link'), [], 'mkdir file'],
  ['create without overwrite', write('file', { overwrite: 'no' }), [], 'mkdir file'],
  ['create only if no file exists', write('file', { overwrite: 'new' }), ['file'], 'rm file'],
  ['view a missing file', view, [], 'mkdir file'],
  ['get a missing file', get, [], 'mkdir file'],
  ['overwrite', write('file'), ['file'], 'rm file'],
  ['overwrite through a link', write('link'), ['file'], 'mv file moved'],
  ['view a file', view, ['file'], 'rm file'],
  ['get a file', get, ['file'], 'mv file moved'],
  ['overwrite and set the mode', write('file', { mode: '600' }), ['file', 'hard'], 'rm file'],
  // A write between the final check and the rename is lost.
  ['overwrite a matching file', write('file', { match: sha256(first) }), ['file'], 'rm file', 'may be lost'],
])(
  'the script "%s" has a correct result despite a concurrent change to the file',
  async (_name, script, names, change, isLost?: string) => {
    const [before, after, never] = await outcomesOf(names, script, change, ['before', 'after', 'never'])
    const known = [before!, after!, ...(isLost ? [never!] : [])].map(({ found }) => found)
    // Until the change, each run takes the same steps as the unchanged run.
    const steps = Array.from({ length: never!.steps }, (_, index) => index + 1)
    expect(steps.length).toBeGreaterThan(3)
    const outcomes = await outcomesOf(names, script, change, steps)
    expect(outcomes.filter(({ isChanged }) => !isChanged)).toEqual([])
    const wrong = outcomes.filter(({ found }) => !known.includes(found))
    expect({ wrong, known }).toEqual({ wrong: [], known })
  },
)

test.each(['/bin/sh', 'bash'])('SIGTERM does not stop the cleanup of a failed write in %s', async (shell) => {
  const folder = mkdtempSync(join(root, 'term-'))
  const rm = '#!/bin/sh\nkill -TERM 0\nPATH=/usr/bin:/bin exec rm "$@"\n'
  writeFileSync(join(folder, 'rm'), rm, { mode: 0o755 })
  const env = { PATH: `${folder}:${process.env.PATH}`, HOME: folder }
  const args = ['-c', writeScript, 'sh', join(folder, 'file'), 'keep', 'yes', '', sha256(content)]
  const child = spawn(shell, args, { env, detached: true, stdio: ['pipe', 'ignore', 'ignore'] })
  child.stdin.end('truncated')
  const [status] = await once(child, 'exit')
  expect([status, readdirSync(folder)]).toEqual([exits.cutShort, ['rm']])
})

let root: string
beforeAll(() => {
  root = mkdtempSync(join(tmpdir(), 'file-steps-'))
})
afterAll(() => rmSync(root, { recursive: true }))

/** Before a step, before or after the script, or never. */
type Moment = number | 'before' | 'after' | 'never'

/**
 * Counts steps, and makes the change before step `at`. Shell built-ins that touch no files are not steps.
 * Commands in `$( )` run in a subshell and are reported separately.
 */
const traceSteps = `
only_shell='^(([a-z]+=([$][(].*[)]|[$][{][^}]*[}]|[^ ]*) ?)+|\\[ (-n|-z|") ?.*|(case|return|umask|trap) .*|return)$'
is_call() { [[ $1 != *[\\<\\>]* ]] && declare -F "\${1%% *}" >/dev/null; }
before_step() {
  if [[ $BASH_COMMAND =~ $only_shell ]] || is_call "$BASH_COMMAND"; then return; fi
  read -r steps <"$HOME.steps"
  echo $((steps + 1)) >"$HOME.steps"
  if [ $((steps + 1)) = "$at" ]; then trap - DEBUG; : >"$HOME.changed"; eval "$CHANGE" >/dev/null 2>&1; fi
}
set -T
trap before_step DEBUG
`

/** Uses one shell for all moments, because starting a shell is slower than the script. */
const atEachMoment = `
for at in $MOMENTS; do
  cd "$FOLDER/$at" || exit
  echo 0 >"$PWD.steps"
  if [ "$at" = before ]; then eval "$CHANGE"; fi
  (
    HOME=$PWD
    set -- "$PWD/$1" "\${@:2}"
    eval "$SCRIPT"
  ) <"$FOLDER/stdin" >"$PWD.stdout" 2>"$PWD.stderr"
  echo $? >"$PWD.status"
  if [ "$at" = after ]; then eval "$CHANGE"; fi
done`

/** @param names all names of one file */
async function outcomesOf(names: string[], script: Script, change: string, moments: Moment[]) {
  const folder = mkdtempSync(join(root, 'case-'))
  for (const at of moments) prepare(join(folder, String(at)), names)
  writeFileSync(join(folder, 'stdin'), script.stdin)
  const env = {
    ...{ PATH: process.env.PATH, LC_ALL: 'C', QUOTING_STYLE: 'literal', HOME: folder, FOLDER: folder },
    ...{ CHANGE: change, SCRIPT: traceSteps + script.text, MOMENTS: moments.join(' ') },
  }
  await new Promise<void>((resolve, reject) => {
    const done = (error: Error | null) => (error ? reject(error) : resolve())
    execFile('bash', ['-c', atEachMoment, 'sh', ...script.args], { env }, done)
  })
  return moments.map((at) => {
    const place = join(folder, String(at))
    const [stdout, stderr, status, steps] = ['stdout', 'stderr', 'status', 'steps'].map((name) =>
      readFileSync(`${place}.${name}`, 'utf8'),
    ) as [string, string, string, string]
    const told = Number(status) === 0 ? stdout : problemOf(Number(status), stderr).code
    const found = JSON.stringify({ told, after: look(place) })
    return { at, found, steps: Number(steps), isChanged: existsSync(`${place}.changed`) }
  })
}

function prepare(place: string, names: string[]) {
  mkdirSync(place)
  symlinkSync('file', join(place, 'link'))
  const [one, ...others] = names.map((name) => join(place, name))
  if (one) writeFileSync(one, first)
  for (const other of others) linkSync(one!, other)
}

const look = (folder: string) =>
  readdirSync(folder, { withFileTypes: true }).map((entry) => {
    const path = join(folder, entry.name)
    const mode = statSync(path, { throwIfNoEntry: false })?.mode.toString(8)
    return [entry.name, mode, entry.isFile() && readFileSync(path, 'utf8')]
  })

test('a sort that lacks temporary space counts as too many names, not as a failed write', () => {
  const message = "sort: write failed: '/tmp/sortqZ3b0a': No space left on device\n"
  expect(problemOf(143, message)).toMatchObject({ code: 'invalid_request' })
  expect(problemOf(1, 'cat: write error: No space left on device\n')).toMatchObject({ code: 'disk_full' })
})
