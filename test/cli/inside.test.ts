/** `exec` and `files` of the built client in a real sandbox. */
import { readFileSync } from 'node:fs'
import { describe, expect, test } from 'vitest'
import { shareWorld } from '../support/shared.ts'
import { clientPath } from './client.ts'
import { makeUsers, shareSession } from './users.ts'

const world = shareWorld()
const users = makeUsers(world)

describe('exec', () => {
  const user = shareSession(users)
  const exec = (args: string[], input?: string | Uint8Array) =>
    user.run(['exec', ...args], input === undefined ? {} : { input })

  test('passes stdout, stderr and the exit code through', async () => {
    expect(await exec(['--', 'sh', '-c', 'printf out; printf err >&2; exit 3'])).toMatchObject({
      stdout: 'out',
      stderr: 'err',
      code: 3,
    })
  })

  test('passes stdin through, byte for byte', async () => {
    const text = '\ufeffhéllo\n\0\ttab 🎈 no newline at the end'
    expect((await exec(['cat'], text)).bytes).toEqual(Buffer.from(text))
    expect(await exec(['wc', '-c'], 'y'.repeat(1_000_000))).toMatchObject({ stdout: '1000000\n' })
    const all = Buffer.from(Array.from({ length: 512 }, (_, index) => index % 256))
    expect((await exec(['cat'], all)).bytes).toEqual(all)
    expect(await exec(['-n', 'cat'], 'not sent')).toMatchObject({ stdout: '', code: 0 })
  })

  test.each([
    [['echo', '--json', '--help', '-s', '--', 'x'], '--json --help -s -- x\n'],
    [['--', 'echo', '--json', '--help', '--', 'x'], '--json --help -- x\n'],
    [['--cwd', '/tmp', 'pwd'], '/tmp\n'],
    [['--env', 'A=b c', '--env', 'B==', '--', 'sh', '-c', 'echo "$A" "$B"'], 'b c =\n'],
    [
      ['printf', '[%s]', 'a b', '', "it's", '"', '$HOME', 'new\nline', '*'],
      `[a b][][it's]["][$HOME][new\nline][*]`,
    ],
    [['-c', 'echo one | tr a-z A-Z; echo "$0"'], 'ONE\n/bin/sh\n'],
  ])('%j gives the command what was typed', async (args, stdout) => {
    expect(await exec(args)).toMatchObject({ stdout, stderr: '', code: 0 })
  })

  test.each([
    ['its own 255', ['-c', 'exit 255'], 255],
    ['its own 1', ['false'], 1],
    ['its own 2', ['-c', 'exit 2'], 2],
    ['124 when it timed out', ['--timeout', '300ms', 'sleep', '30'], 124],
    ['126 when it is no program', ['/etc/passwd'], 126],
    ['127 when there is none', ['no-such-command'], 127],
    ['137 when it was killed', ['-c', 'kill -9 $$'], 137],
    ['143 when it was asked to end', ['-c', 'kill -TERM $$'], 143],
    ['125 when its session is unknown', ['-s', 'sbx_none', 'true'], 125],
  ])('ends with %s', async (_, args, code) => {
    expect(await exec(args)).toMatchObject({ code })
  })

  test('gives what was printed before the time-out, and says that it timed out', async () => {
    const { stdout, stderr } = await exec(['--timeout', '500ms', '-c', 'echo partial; sleep 30'])
    expect(stdout).toBe('partial\n')
    expect(stderr).toContain('timed out')
  })

  test('gives all that was printed, however much', async () => {
    const { bytes, stderr, code } = await exec(['-c', 'yes | head -c 12000000'])
    expect(stderr).toBe('')
    expect(bytes.length).toBe(12_000_000)
    expect(code).toBe(0)
  })

  test('--json gives the whole result, and still the exit code of the command', async () => {
    const { code, json, stderr } = await exec(['--json', '--', 'sh', '-c', 'echo out; echo err >&2; exit 4'])
    expect(code).toBe(4)
    expect(stderr).toBe('')
    expect(json()).toMatchObject({
      status: 'exited',
      exit_code: 4,
      stdout: 'out\n',
      stderr: 'err\n',
      truncated: false,
    })
  })

  test('an option of the command does not make a failure of ours JSON', async () => {
    const { stdout, stderr, code } = await exec(['-s', 'sbx_none', 'cat', '--json'])
    expect(code).toBe(125)
    expect(stdout).toBe('')
    expect(stderr).toContain('The session sbx_none was not found')
  })

  test('a destroyed session is a failure of the service, 125', async () => {
    await using gone = await users.newSession()
    await gone.run(['session', 'rm', '--yes'])
    const { code, json } = await gone.run(['exec', '--json', '-s', gone.id, 'true'])
    expect(code).toBe(125)
    expect(json().error).toMatchObject({ code: 'sandbox_destroyed', exit_code: 125 })
  })
})

describe('files', () => {
  const user = shareSession(users)
  const files = (args: string[], input?: string | Uint8Array) =>
    user.run(['files', ...args], input === undefined ? {} : { input })

  test('hold any bytes, from stdin or a local file, and give them back', async () => {
    const all = Buffer.from(Array.from({ length: 512 }, (_, index) => index % 256))
    expect(await files(['create', 'deep/bytes'], all)).toMatchObject({
      code: 0,
      stdout: '/workspace/deep/bytes\n',
    })
    expect((await files(['view', 'deep/bytes'])).bytes).toEqual(all)
    expect(await files(['create', 'client.js', '--from-file', clientPath])).toMatchObject({ code: 0 })
    expect((await files(['view', 'client.js'])).bytes).toEqual(readFileSync(clientPath))
    const text = '\ufeffhéllo\r\n'
    expect(await files(['create', 'text', '--content', text])).toMatchObject({ code: 0 })
    expect((await files(['view', 'text'])).bytes).toEqual(Buffer.from(text))
    expect(await files(['create', 'empty'], '')).toMatchObject({ code: 0 })
    expect(await files(['view', 'empty'])).toMatchObject({ code: 0, stdout: '' })
  })

  test('are shown by lines', async () => {
    await files(['create', 'lines', '--content', 'one\ntwo\nthree\n'])
    for (const [range, shown] of [
      ['2:3', 'two\nthree\n'],
      ['2:', 'two\nthree\n'],
      [':1', 'one\n'],
      ['2', 'two\n'],
    ]) {
      expect(await files(['view', 'lines', '--lines', range!])).toMatchObject({ code: 0, stdout: shown })
    }
  })

  test('are replaced only with --overwrite, and get the mode asked for', async () => {
    const create = ['create', 'script', '--content', '#!/bin/sh\necho ran\n']
    expect(await files(create)).toMatchObject({ code: 0 })
    const again = await files([...create, '--json'])
    expect(again.json().error).toMatchObject({ code: 'file_exists', exit_code: 5 })
    expect(again.stderr).toContain('--overwrite')
    expect(await files([...create, '--overwrite', '--mode', '755'])).toMatchObject({ code: 0 })
    expect(await user.run(['exec', './script'])).toMatchObject({ code: 0, stdout: 'ran\n' })
  })

  test.each([
    ['a missing file', ['view', 'none'], 3],
    ['a directory', ['view', '/tmp'], 5],
    ['a read-only place', ['create', '/etc/x', '--content', 'x'], 1],
    ['a local file that is not there', ['create', 'x', '--from-file', '/nonexistent'], 1],
  ])('%s ends with its code', async (_, args, code) => {
    const ran = await files([...args, '--json'])
    expect(ran.code).toBe(code)
    expect(ran.json().error.exit_code).toBe(code)
  })
})
