/** An account whose clients create, use, inspect and destroy sandboxes. */
import { setTimeout as sleep } from 'node:timers/promises'
import { run as runInPod, shell } from '../../drivers/processes.ts'
import type { Account } from '../../support/account.ts'
import { between, makeRandom, pickWeighted, type Random } from '../random.ts'
import { attempt, type Recorder, type SandboxEntry } from '../recorder.ts'
import { apiCount, cap, type Stage } from '../stage.ts'
import { fed, foreground, inBackground, withKey, withStdin } from './commands.ts'
import { files, search } from './files.ts'
import { anyApi, type Lane, newToken, send } from './lane.ts'
import { lists, secrets } from './secrets.ts'
import { attached, chatty, streamed } from './streams.ts'

const works: { weight: number; work: (lane: Lane) => Promise<void> }[] = [
  { weight: 6, work: foreground },
  { weight: 2, work: withStdin },
  { weight: 4, work: withKey },
  { weight: 3, work: inBackground },
  { weight: 2, work: fed },
  { weight: 3, work: streamed },
  { weight: 1, work: chatty },
  { weight: 3, work: attached },
  { weight: 2, work: files },
  { weight: 1, work: search },
  { weight: 1, work: secrets },
  { weight: 1, work: lists },
]

/** Number of clients, which exceeds the quota by one, so that some creates are rejected. */
const clients = cap + 1
const lanesOfSandbox = 2
/** Milliseconds in which a command may still start after its request failed. */
const lateMs = 7_000
const cleanUpEveryMs = 4_000
const lastCleanUpMs = 60_000

interface TenantOptions {
  stage: Stage
  recorder: Recorder
  account: Account
  seed: number
  isOver: () => boolean
}

/** Runs a tenant's clients until `isOver`. Resolves when every sandbox has been inspected and destroyed. */
export async function runTenant(options: TenantOptions): Promise<void> {
  const tenant = new Tenant(options)
  const cleaning = tenant.cleanUpRepeatedly()
  await Promise.all(Array.from({ length: clients }, (_, index) => tenant.client(index)))
  await cleaning
  await options.stage.world.eventually(() => tenant.cleanUp({ everything: true }), lastCleanUpMs)
}

class Tenant {
  private readonly options: TenantOptions
  /** Completed creates. If no client received the sandbox id, the sandbox can be destroyed. */
  private readonly settledCreates = new Set<string>()
  private readonly cleanUpRandom: Random

  constructor(options: TenantOptions) {
    this.options = options
    this.cleanUpRandom = makeRandom(options.seed * 1000 + 999)
  }

  async client(index: number): Promise<void> {
    const { seed, isOver } = this.options
    const random = makeRandom(seed * 1000 + index)
    while (!isOver()) {
      const sandbox = await this.create(random)
      if (!sandbox) {
        await sleep(between(random, 200, 800))
        continue
      }
      await Promise.all(Array.from({ length: lanesOfSandbox }, () => this.workIn(sandbox, random)))
      await this.finish(sandbox, random)
    }
  }

  private async create(random: Random): Promise<SandboxEntry | undefined> {
    const { account, recorder } = this.options
    const token = newToken()
    const isKeyed = random() < 0.4
    const headers: Record<string, string> = {
      ...(isKeyed ? { 'idempotency-key': token } : {}),
      ...(random() < 0.2 ? { prefer: 'respond-async' } : {}),
    }
    const body = {
      metadata: { token },
      ...(random() < 0.1 ? { ttl_seconds: between(random, 4, 15) } : {}),
    }
    const ask = (api: number) =>
      attempt(recorder, isKeyed ? 'create with a key' : 'create', (signal) =>
        account.call('createSandbox', { headers, body, api, signal }),
      )
    const apis = isKeyed ? Array.from({ length: apiCount }, (_, api) => api) : [anyApi({ random })]
    const outcomes = await Promise.all(apis.map(ask))
    this.settledCreates.add(token)
    const ids = new Set(outcomes.flatMap((outcome) => ('ok' in outcome ? [outcome.ok.body.id] : [])))
    if (ids.size > 1)
      recorder.wrong('one Idempotency-Key created two sandboxes', { token, ids: [...ids] }, [...ids])
    const [id] = ids
    return id === undefined ? undefined : this.entryOf(id)
  }

  private entryOf(id: string): SandboxEntry {
    const { recorder, account } = this.options
    const entry = recorder.sandboxes.get(id) ?? {
      id,
      accountId: account.id,
      isDestroyRequested: false,
      commands: [],
    }
    recorder.sandboxes.set(id, entry)
    return entry
  }

  private async workIn(sandbox: SandboxEntry, random: Random): Promise<void> {
    const { account, recorder, isOver, stage } = this.options
    const lane: Lane = {
      recorder,
      account,
      url: (api) => stage.world.url(api),
      sandbox,
      params: { id: sandbox.id },
      random,
    }
    for (let remaining = between(random, 4, 16); remaining > 0 && !isOver(); remaining--) {
      await pickWeighted(random, works).work(lane)
      await sleep(between(random, 20, 120))
      if (remaining % 4 === 0 && (await this.isGone(sandbox, random))) return
    }
  }

  private async isGone(sandbox: SandboxEntry, random: Random): Promise<boolean> {
    const outcome = await send({ ...this.options, random }, 'getSandbox', { params: { id: sandbox.id } })
    return 'ok' in outcome && outcome.ok.body.state === 'destroyed'
  }

  /** Waits for late commands, inspects the sandbox and destroys it. */
  private async finish(sandbox: SandboxEntry, random: Random): Promise<void> {
    await sleep(lateMs)
    sandbox.ran = await this.readRan(sandbox)
    sandbox.isDestroyRequested = true
    const client = { ...this.options, random }
    for (let tried = 0; tried < 200; tried++) {
      const outcome = await send(client, 'destroySandbox', { params: { id: sandbox.id } }, 'destroy')
      if ('ok' in outcome) return
      await sleep(300)
    }
    this.options.recorder.wrong('a sandbox could not be destroyed', { sandbox: sandbox.id }, [sandbox.id])
  }

  /** Reads the file `ran` over a connection without faults. @returns undefined if the sandbox has ended */
  private async readRan({ id }: SandboxEntry): Promise<Map<string, number[]> | undefined> {
    const { driver } = this.options.stage
    for (let tried = 0; tried < 3; tried++) {
      try {
        const pod = (await driver.list()).find(({ sandboxId, death }) => sandboxId === id && !death)
        if (!pod) return undefined
        const { stdout, code } = await runInPod(driver, pod, shell('cat "$HOME/ran" 2>/dev/null; echo end'))
        if (code === 0 && stdout.endsWith('end\n')) return parseRan(stdout)
      } catch {
        // The sandbox is ending, or a fault affects the connection to the cluster.
      }
      await sleep(500)
    }
    return undefined
  }

  async cleanUpRepeatedly(): Promise<void> {
    while (!this.options.isOver()) {
      await sleep(cleanUpEveryMs)
      await this.cleanUp({ everything: false })
    }
  }

  /** Destroys sandboxes whose ids no client received. @returns whether none remain */
  async cleanUp({ everything }: { everything: boolean }): Promise<boolean> {
    const { recorder } = this.options
    const client = { ...this.options, random: this.cleanUpRandom }
    const outcome = await send(client, 'listSandboxes', { query: { state: 'active' } })
    if ('failed' in outcome) return false
    const { data } = outcome.ok.body
    if (data.length > cap) {
      recorder.wrong('a list exceeds the quota', { ids: data.map(({ id }) => id) })
    }
    for (const { id, metadata } of data) {
      const isUnknown = !recorder.sandboxes.has(id) && this.settledCreates.has(metadata.token ?? '')
      if (!isUnknown && !everything) continue
      this.entryOf(id).isDestroyRequested = true
      await send(client, 'destroySandbox', { params: { id } }, 'destroy an orphan')
    }
    return data.length === 0
  }
}

function parseRan(text: string): Map<string, number[]> {
  const ran = new Map<string, number[]>()
  for (const line of text.trimEnd().split('\n')) {
    const [token, at] = line.split(' ')
    if (!token || at === undefined) continue
    ran.set(token, [...(ran.get(token) ?? []), Number(at)])
  }
  return ran
}
