/** Rules of docs/allowlist.md, and attempts to bypass an allowlist. */
import { readFileSync } from 'node:fs'
import { describe, expect, test } from 'vitest'
import { decide, refuseVariables, warningOf } from '../shared/allowlist/decide.ts'
import { affectsPrograms } from '../shared/allowlist/environment-variables.ts'
import { bypasses, bypassList, harmlessVariables, notPrevented } from './allowlist-bypasses.ts'

describe('allowlist entries', () => {
  test.each<[string, string[], boolean]>([
    ['ls', ['ls'], true],
    ['ls', ['ls', '-la', '/'], true],
    ['ls', ['lsof'], false],
    ['ls', ['/bin/ls'], false],
    ['/bin/ls', ['/bin/ls', '-la'], true],
    ['/bin/ls', ['ls'], false],
    ['./build.sh', ['./build.sh'], true],
    ['git status', ['git', 'status'], true],
    ['git status', ['git', 'status', '--short', 'any', 'more'], true],
    ['git status', ['git'], false],
    ['npm run *', ['npm', 'run', 'test'], true],
    ['npm run *', ['npm', 'run', 'test', '--', '--watch'], true],
    ['npm run *', ['npm', 'run', ''], true],
    ['npm * --dry-run', ['npm', 'publish', '--dry-run'], true],
    ['npm * --dry-run', ['npm', 'publish', 'a', '--dry-run'], false],
    ['sh', ['sh', '-c', 'anything'], true],
    ['bash build.sh', ['bash', 'build.sh', 'x'], true],
  ])('the entry %j allows the command %j: %s', (entry, argv, allowed) => {
    expect(decide([entry], argv).allowed).toBe(allowed)
  })
})

describe('shell strings', () => {
  test.each<[string, boolean]>([
    ['sh', true],
    ['bash', true],
    ['/usr/bin/dash', true],
    ['sh -c', true],
    ['sh -c *', true],
    ['sh -e', false],
    ['sh -c ls', false],
    ['bash build.sh', false],
    ['shred', false],
    ['env', false],
  ])('the entry %j allows any shell string: %s', (entry, allowed) => {
    expect(decide(['ls', entry], 'ls; id')).toMatchObject(
      allowed
        ? { allowed, entry }
        : {
            allowed,
            needs: 'sh',
            reason: expect.stringMatching(/shell string requires a shell.*list of arguments/),
          },
    )
  })
})

test('allows every command if no allowlist is set, and no command if the allowlist is empty', () => {
  for (const command of ['rm -rf /', ['rm', '-rf', '/']]) {
    expect(decide(undefined, command)).toEqual({ allowed: true })
    expect(decide(null, command)).toEqual({ allowed: true })
    expect(decide([], command)).toMatchObject({ allowed: false })
  }
})

test('returns the first allowlist entry that allows a command', () => {
  expect(decide(['ls', 'git *', 'git status'], ['git', 'status'])).toEqual({ allowed: true, entry: 'git *' })
})

test("the reason for an allowlist rejection does not reveal the command's arguments", () => {
  expect(decide(['git status', 'git log'], ['git', 'push', 'hunter2'])).toEqual({
    allowed: false,
    reason: `"git" is allowed only with these arguments: "git status", "git log".`,
    needs: 'git',
  })
  expect(decide(['ls'], ['rm', 'hunter2'])).toEqual({
    allowed: false,
    reason: `"rm" is not on the account's command allowlist.`,
    needs: 'rm',
  })
  expect(decide(['ls'], ['rm -rf'])).not.toHaveProperty('needs')
})

test.each(bypasses.filter(([, , env]) => !env))(
  'rejects a known bypass of the allowlist: %s',
  (_, command) => {
    expect(decide(bypassList, command).allowed).toBe(false)
  },
)

describe('dangerous variables', () => {
  const ways = bypasses.flatMap(([name, command, env]) => (env ? [{ name, command, env }] : []))

  test.each(ways)(
    'rejects an environment variable that would bypass the allowlist: $name',
    ({ command, env }) => {
      const [variable] = Object.keys(env)
      expect(decide(bypassList, command, env)).toEqual({
        allowed: false,
        variable,
        reason: expect.stringMatching(
          new RegExp(`^The variable ${variable} of this request .* Leave it out.$`),
        ),
      })
      expect(decide(bypassList, command)).toMatchObject({ allowed: true })
      expect(decide(null, command, env)).toEqual({ allowed: true })
    },
  )

  test.each(['MAGICK_CONFIGURE_PATH', 'HELM_PLUGINS', 'FLASK_APP', 'GUNICORN_CMD_ARGS', 'GH_PAGER'])(
    'classifies %s as a dangerous environment variable',
    (name) => {
      expect(affectsPrograms(name)).toBe(true)
    },
  )

  test.each(harmlessVariables)('accepts the harmless environment variable %s', (name) => {
    expect(affectsPrograms(name)).toBe(false)
  })

  test('the error for a secret or sandbox with a dangerous variable suggests a remedy', () => {
    expect(refuseVariables('secret', { A: 1, LD_PRELOAD: 1 })?.reason).toMatch(
      /^The secret LD_PRELOAD .* name\.$/,
    )
    expect(refuseVariables('sandbox', { PS4: 1 })?.reason).toMatch(
      /environment .* Create a sandbox without this variable\.$/,
    )
    expect(refuseVariables('sandbox', { A: 1 })).toBeUndefined()
  })
})

const page = readFileSync(new URL('../docs/allowlist.md', import.meta.url), 'utf8').replace(/\s+/g, ' ')

test.each(notPrevented)(
  'confirms a documented limitation of the allowlist (%s): %s allows %j',
  (words, entry, command, env) => {
    expect(page.slice(page.indexOf('## What it is not'))).toContain(words)
    expect(decide([entry], command, env)).toEqual({ allowed: true, entry })
  },
)

test.each([
  'sh',
  '/bin/bash',
  'python3.11',
  'python3 script.py',
  'env FOO=1 ls',
  'find . -name',
  'make',
  'git',
  'tar -x',
  'git log',
  '/usr/bin/git grep -n',
])('warns that the allowlist entry %j can run other commands', (entry) => {
  expect(warningOf(entry)).toMatch(/can run any|other commands/)
})

test.each(['ls', 'cat', 'git status', 'npm run *', '/bin/echo', 'pytest'])(
  'does not warn about the harmless allowlist entry %j',
  (entry) => {
    expect(warningOf(entry)).toBeUndefined()
  },
)
