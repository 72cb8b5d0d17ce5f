/** Secrets in commands, their redaction in output, and a search for leaked values. */
import { randomBytes } from 'node:crypto'
import { readdirSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { CustomObjectsApi } from '@kubernetes/client-node'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { podName } from '../../shared/data/ids.ts'
import { type Account, type CallOptions, callAs } from '../support/account.ts'
import { describeOnBothDriversAtOnce } from '../support/drivers.ts'
import { startWorld, type World } from '../support/index.ts'
import { openAdmin } from '../support/namespace.ts'
import { inside } from '../support/sandbox-commands.ts'

describeOnBothDriversAtOnce('secrets', (driver) => {
  let world: World
  beforeAll(async () => {
    world = await startWorld({ driver, env: { QUOTA_CONCURRENT_SANDBOXES: '5', LOG_LEVEL: 'trace' } })
  })
  afterAll(() => world[Symbol.asyncDispose]())

  interface Owner {
    alice: Account
    params: { id: string }
    run(command: string | string[], body?: object): Promise<string>
    set(name: string, value: string, sandbox_id?: string): Promise<unknown>
  }

  async function newOwner(body: CallOptions<'createSandbox'>['body'] = {}): Promise<Owner> {
    const alice = await world.account()
    const params = { id: (await alice.call('createSandbox', { body })).body.id }
    return {
      alice,
      params,
      async run(command, body = {}) {
        const { body: result } = await alice.call('execCommand', { params, body: { command, ...body } })
        expect(result.status).toBe('exited')
        return result.stdout + result.stderr
      },
      set: (name, value, sandbox_id) =>
        alice.call('createSecret', { body: { name, value, ...(sandbox_id && { sandbox_id }) } }),
    }
  }

  test('sandbox secrets override account secrets, and env overrides both', async () => {
    const { alice, params, run, set } = await newOwner({ env: { OF_CREATE: 'create' } })
    const { body: other } = await alice.call('createSandbox')
    const show = 'echo "$A|$B|$OF_CREATE|$OF_EXEC"'
    expect(await run(show)).toBe('||create|\n')
    for (const name of ['A', 'B', 'OF_CREATE', 'OF_EXEC']) await set(name, 'account')
    await set('B', 'sandbox', params.id)
    expect(await run(show, { env: { OF_EXEC: 'exec' } })).toBe('account|sandbox|create|exec\n')
    const there = { params: { id: other.id }, body: { command: show } }
    expect((await alice.call('execCommand', there)).body.stdout).toBe('account|account|account|account\n')
    await set('A', 'new')
    await alice.call('deleteSecret', { params: { name: 'B' }, query: { sandbox_id: params.id } })
    expect(await run(show)).toBe('new|account|create|account\n')
  })

  test('secrets of up to 32 KiB reach a command unchanged', async () => {
    const { run, set } = await newOwner()
    const odd = ' \'"$(id)`\\\n\r\t*é🎈\u0001 '
    await set('ODD', odd)
    await set('LONG', 'x'.repeat(32 * 1024))
    expect(await run('printf %s "$ODD"', { reveal: true })).toBe(odd)
    expect(await run('printf %s "$LONG" | wc -c')).toBe('32768\n')
  })

  test('redacts secrets of 8 bytes or more in output, unless the request asks to reveal them', async () => {
    const { run, set } = await newOwner()
    await set('TOKEN', 'p4ssw0rd!')
    await set('SHORT', '1234567')
    const command = 'echo "<$TOKEN>"; echo "<$TOKEN>" >&2; echo "$SHORT"'
    expect(await run(command)).toBe('<[secret TOKEN]>\n1234567\n<[secret TOKEN]>\n')
    expect(await run(command, { reveal: true })).toBe('<p4ssw0rd!>\n1234567\n<p4ssw0rd!>\n')
    // Prints the value in two pieces, with a pause in between.
    expect(await run('printf p4ss; sleep 0.2; printf "w0rd!"; printf p4ss')).toBe('[secret TOKEN]p4ss')
  })

  test('redacts a secret in event streams and in the output of background commands and terminals', async () => {
    const { alice, params, set } = await newOwner()
    await set('TOKEN', 'p4ssw0rd!')
    const command = 'printf p4ss; sleep 0.2; echo "w0rd!"'
    const path = `${world.url()}/v1/sandboxes/${params.id}/exec`
    const headers = { authorization: `Bearer ${alice.key}`, 'content-type': 'application/json' }
    const streamed = await fetch(path, {
      method: 'POST',
      headers: { ...headers, accept: 'text/event-stream' },
      body: JSON.stringify({ command }),
    })
    const kinds = [{ background: true }, { tty: true }]
    const bodies = [await streamed.text()]
    for (const kind of kinds) {
      const { body } = await alice.call('execCommand', { params, body: { command, ...kind } })
      bodies.push((await inside(alice, params).waitForExit(body.id)).stdout)
      bodies.push(await (await fetch(`${path}/${body.id}/output?stream=stdout`, { headers })).text())
    }
    for (const text of bodies) {
      const shown = text.includes('event:') ? decodeEvents(text) : text
      expect(shown).toContain('[secret TOKEN]')
      expect(shown).not.toMatch(/p4ss|w0rd/)
    }
  })

  test('files/view redacts a secret, even where the file is truncated', async () => {
    const { alice, params, run, set } = await newOwner()
    await set('TOKEN', 'p4ssw0rd!')
    await run('echo "a $TOKEN b" > plain; head -c 1048572 /dev/zero | tr "\\0" x > cut; echo "$TOKEN" >> cut')
    const view = async (query: CallOptions<'viewFile'>['query']) =>
      (await alice.call('viewFile', { params, query: query! })).body
    expect(await view({ path: 'plain' })).toMatchObject({ content: 'a [secret TOKEN] b\n', size: 14 })
    expect((await view({ path: 'plain', reveal: 'false' })).content).toBe('a [secret TOKEN] b\n')
    expect((await view({ path: 'plain', reveal: 'true' })).content).toBe('a p4ssw0rd! b\n')
    const cut = await view({ path: 'cut' })
    expect(cut.truncated).toBe(true)
    expect(cut.content).toMatch(/^x+$/)
  })

  test('files/view with a line range redacts each line of a multi-line secret', async () => {
    const { alice, params, run, set } = await newOwner()
    await set('KEY', '-- begin --\nfirst half\nsecond half\n-- end --\n')
    await run('{ echo before; printf %s "$KEY"; echo after; } > key')
    const view = async (start_line: number, end_line: number) =>
      (await alice.call('viewFile', { params, query: { path: 'key', start_line, end_line } })).body.content
    expect(await view(1, 3)).toBe('before\n[secret KEY]\n[secret KEY]\n')
    expect(await view(4, 6)).toBe('[secret KEY]\n[secret KEY]\nafter\n')
    expect(await view(1, 6)).toBe('before\n[secret KEY]after\n')
  })

  test('files/raw redacts secrets on request, even across chunk boundaries', async () => {
    const { alice, params, run, set } = await newOwner()
    await set('TOKEN', 'p4ssw0rd!')
    await set('KEY', '-- begin --\nfirst half\nsecond half\n-- end --\n')
    await run('{ for i in $(seq 30000); do echo "$i $TOKEN"; done; printf %s "$KEY"; echo after; } > long')
    const raw = async (query: Record<string, string>) => {
      const search = new URLSearchParams({ path: 'long', ...query })
      const headers = { authorization: `Bearer ${alice.key}` }
      return await fetch(`${world.url()}/v1/sandboxes/${params.id}/files/raw?${search}`, { headers })
    }
    const lines = Array.from({ length: 30_000 }, (_, index) => `${index + 1} [secret TOKEN]\n`).join('')
    const shown = await raw({ reveal: 'false' })
    expect(shown.headers.get('content-length')).toBeNull()
    expect((await shown.text()) === `${lines}[secret KEY]after\n`).toBe(true)
    const whole = await (await raw({})).text()
    expect(whole.endsWith('30000 p4ssw0rd!\n-- begin --\nfirst half\nsecond half\n-- end --\nafter\n')).toBe(
      true,
    )
    const part = { start_line: '30000', end_line: '30002' }
    expect(await (await raw({ ...part, reveal: 'false' })).text()).toBe(
      '30000 [secret TOKEN]\n[secret KEY]\n[secret KEY]\n',
    )
    expect(await (await raw(part)).text()).toBe('30000 p4ssw0rd!\n-- begin --\nfirst half\n')
    expect(await (await raw({ start_line: '3', end_line: '2' })).text()).toBe('')
    expect((await raw({ path: 'nowhere', reveal: 'false' })).status).toBe(404)
  })

  test('PostgreSQL, Redis, logs and Kubernetes contain no plain-text secret', async () => {
    const canary = `canary-${randomBytes(12).toString('hex')}`
    const { alice, params, run, set } = await newOwner()
    await set('CANARY', canary)
    await set('CANARY', canary, params.id)
    await run('echo "$CANARY" > kept; echo "$CANARY"; echo "$CANARY" >&2')
    // Includes errors of commands that use the secret.
    await alice.call('execCommand', { params, body: { command: ['no such command'] } })
    await alice.call('execCommand', { params, body: { command: 'echo $CANARY; sleep 9', timeout_ms: 300 } })
    await alice.call('execCommand', {
      params,
      body: { command: 'echo $CANARY; sleep 0.3', background: true },
    })
    const tooLong = { name: 'CANARY', value: canary.repeat(2_000) }
    const refusal = await alice.call('createSecret', { body: tooLong }).catch((error) => error)
    expect(refusal).toMatchObject({ code: 'invalid_request' })
    const malformed = await fetch(`${world.url()}/v1/secrets`, {
      method: 'POST',
      headers: { authorization: `Bearer ${alice.key}`, 'content-type': 'application/json' },
      body: `{"name": "CANARY", "value": "${canary}"`,
    })
    expect(malformed.status).toBe(400)
    const wrongKey = await callAs(world, { key: 'nonsense' }, 'createSecret', {
      body: { name: 'CANARY', value: canary },
    }).catch((error) => error)
    const answers = [
      refusal.problem,
      wrongKey.problem,
      await malformed.text(),
      (await alice.call('listSecrets')).body,
    ]

    const places: Record<string, string[]> = {
      answers: answers.map((answer) => JSON.stringify(answer)),
      Postgres: await everythingInPostgres(),
      Redis: await everythingInRedis(),
      logs: filesLike(/\.log$/),
      Kubernetes: driver === 'kubernetes' ? await everythingInKubernetes() : [],
    }
    const forms = [
      canary,
      Buffer.from(canary).toString('base64').slice(0, 30),
      Buffer.from(canary).toString('hex'),
    ]
    for (const [place, texts] of Object.entries(places)) {
      if (place !== 'Kubernetes' || driver === 'kubernetes') expect(texts.length, place).toBeGreaterThan(0)
      const leaks = texts.filter((text) => forms.some((form) => text.includes(form)))
      expect(leaks, place).toEqual([])
    }
    // The search finds the name of the secret and the id of the sandbox.
    expect(places.Postgres!.some((text) => text.includes('CANARY'))).toBe(true)
    expect(places.logs!.some((text) => text.includes(params.id))).toBe(true)
    if (driver === 'kubernetes')
      expect(places.Kubernetes!.some((text) => text.includes(podName(params.id)))).toBe(true)
  })

  /** All table rows as text. Bytes are shown as hex and as characters. */
  async function everythingInPostgres(): Promise<string[]> {
    const tables = await world.db.query<{ name: string }>(
      `select quote_ident(schemaname) || '.' || quote_ident(relname) as name from pg_stat_user_tables`,
    )
    const texts: string[] = []
    for (const { name } of tables) {
      const rows = await world.db.query<{ row: Record<string, unknown> }>(
        `select to_jsonb(t) as row from ${name} as t`,
      )
      for (const { row } of rows) {
        texts.push(JSON.stringify(row))
        for (const value of Object.values(row)) {
          if (typeof value === 'string' && value.startsWith('\\x')) {
            texts.push(Buffer.from(value.slice(2), 'hex').toString('latin1'))
          }
        }
      }
    }
    return texts
  }

  async function everythingInRedis(): Promise<string[]> {
    const keys = await world.redis.keys('*')
    const dumps = await Promise.all(keys.map((key) => world.redis.dumpBuffer(key)))
    // The append-only file also contains deleted data.
    return [...keys, ...dumps.map((dump) => dump?.toString('latin1') ?? ''), ...filesLike(/aof|rdb/)]
  }

  const filesLike = (name: RegExp): string[] =>
    readdirSync(world.folder, { recursive: true, encoding: 'utf8' })
      .filter((path) => name.test(path))
      .flatMap((path) => readIfFile(join(world.folder, path)))

  /** All objects in the namespace, and the related cluster events. */
  async function everythingInKubernetes(): Promise<string[]> {
    const config = openAdmin()
    const custom = config.makeApiClient(CustomObjectsApi)
    const { namespace, api } = world.cluster!
    const resources = (await api.getAPIResources()).resources.filter(
      ({ namespaced, verbs, name }) => namespaced && verbs.includes('list') && !name.includes('/'),
    )
    const core = await Promise.all(
      resources.map(({ kind }) => {
        const list = `listNamespaced${kind}` as 'listNamespacedPod'
        return api[list]({ namespace })
      }),
    )
    const others = [
      ['networking.k8s.io', 'v1', 'networkpolicies'],
      ['rbac.authorization.k8s.io', 'v1', 'roles'],
      ['rbac.authorization.k8s.io', 'v1', 'rolebindings'],
      ['events.k8s.io', 'v1', 'events'],
      ['coordination.k8s.io', 'v1', 'leases'],
    ] as const
    const more = await Promise.all(
      others.map(([group, version, plural]) =>
        custom.listNamespacedCustomObject({ group, version, namespace, plural }),
      ),
    )
    return [...core, ...more].map((list) => JSON.stringify(list))
  }
})

function readIfFile(path: string): string[] {
  try {
    return [readFileSync(path, 'latin1')]
  } catch {
    return []
  }
}

/** Joins the bytes of all output events, so that a split value is also found. */
function decodeEvents(text: string): string {
  return [...text.matchAll(/^event: (?:stdout|stderr)$[\s\S]*?^data: (.*)$/gm)]
    .map(([, data]) => {
      const { text: plain, base64 } = JSON.parse(data!) as { text?: string; base64?: string }
      return plain ?? Buffer.from(base64 ?? '', 'base64').toString()
    })
    .join('')
}
