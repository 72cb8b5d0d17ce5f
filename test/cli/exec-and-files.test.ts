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

  test('`exec` passes stdin through byte for byte', async () => {
    const text = '\ufeffhéllo\n\0\ttab 🎈 no newline at the end'
    expect((await exec(['cat'], text)).bytes).toEqual(Buffer.from(text))
    expect(await exec(['wc', '-c'], 'y'.repeat(1_000_000))).toMatchObject({ stdout: '1000000\n' })
    const all = Buffer.from(Array.from({ length: 512 }, (_, index) => index % 256))
    expect((await exec(['cat'], all)).bytes).toEqual(all)
    expect(await exec(['-n', 'cat'], 'not sent')).toMatchObject({ stdout: '', code: 0 })
  })

  test('`exec -d` exits after its command has ended, even if stdin stays open', async () => {
    const ran = await user.run(['exec', '-d', '--', 'true'], {
      openInput: true,
      onStart: ({ stdin }) => void stdin!.write('first\n'),
    })
    expect(ran).toMatchObject({ code: 0, stdout: expect.stringMatching(/^exec_/) })
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
  ])("exec %j passes the command's arguments unchanged", async (args, stdout) => {
    expect(await exec(args)).toMatchObject({ stdout, stderr: '', code: 0 })
  })

  test.each([
    ['255 from the command', ['-c', 'exit 255'], 255],
    ['137 after SIGKILL', ['-c', 'kill -9 $$'], 137],
    ['143 after SIGTERM', ['-c', 'kill -TERM $$'], 143],
  ])('`exec` exits with code %s', async (_, args, code) => {
    expect(await exec(args)).toMatchObject({ code })
  })

  test('`exec` prints the output received before a timeout, and exits with code 124', async () => {
    expect(await exec(['--timeout', '500ms', '-c', 'echo partial; sleep 30'])).toMatchObject({
      code: 124,
      stdout: 'partial\n',
      stderr: expect.stringContaining('timed out'),
    })
  })

  test("`exec --json` prints the whole result and exits with the command's exit code", async () => {
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

  test('a --json argument of the remote command does not make the client print errors as JSON', async () => {
    expect(await exec(['-s', 'sbx_none', 'cat', '--json'])).toMatchObject({
      code: 125,
      stdout: '',
      stderr: expect.stringContaining('Session sbx_none was not found'),
    })
  })

  test('`exec` exits with code 125 if the session has been destroyed', async () => {
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

  test('`files create` stores binary data from stdin or a local file', async () => {
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

  test('`files create` replaces a file only with --overwrite', async () => {
    const create = ['create', 'script', '--content', '#!/bin/sh\necho ran\n']
    expect(await files(create)).toMatchObject({ code: 0 })
    const again = await files([...create, '--json'])
    expect(again.json().error).toMatchObject({ code: 'file_exists', exit_code: 5 })
    expect(again.stderr).toContain('--overwrite')
    expect(await files([...create, '--overwrite', '--mode', '755'])).toMatchObject({ code: 0 })
    expect(await user.run(['exec', './script'])).toMatchObject({ code: 0, stdout: 'ran\n' })
  })

  test.each([
    ['a path that is not writable', ['create', '/etc/x', '--content', 'x'], 1],
    ['a missing local file', ['create', 'x', '--from-file', '/nonexistent'], 1],
  ])('a `files` command for %s exits with the documented code', async (_, args, code) => {
    const ran = await files([...args, '--json'])
    expect(ran.code).toBe(code)
    expect(ran.json().error.exit_code).toBe(code)
  })
})
