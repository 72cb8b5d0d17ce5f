/** One account and its clients: they make sandboxes, work in them, look into them at the end and destroy them. */
import { setTimeout as sleep } from 'node:timers/promises'
import { run as runInPod, shell } from '../../drivers/processes.ts'
import type { Account } from '../../support/account.ts'
import { attempt, type Ledger, type SandboxEntry } from '../ledger.ts'
import { between, makeRandom, pickWeighted, type Random } from '../random.ts'
import { apiCount, cap, type Stage } from '../stage.ts'
import { fed, foreground, inBackground, withKey, withStdin } from './commands.ts'
import { files, search } from './files.ts'
import { anyApi, type Lane, newToken } from './lane.ts'
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

/** One more than may be there: some creates are refused. */
const clients = cap + 1
const lanesOfSandbox = 2
/** What was given up is looked for so long after: until then it may yet be run. */
const lateMs = 7_000
const tidyEveryMs = 4_000
const lastTidyMs = 60_000

export interface TenantOptions {
  stage: Stage
  ledger: Ledger
  account: Account
  seed: number
  isOver: () => boolean
}

/** Resolves when it is over, every sandbox has been looked into, and none is left. */
export async function runTenant(options: TenantOptions): Promise<void> {
  const tenant = new Tenant(options)
  const tidying = tenant.tidyForEver()
  await Promise.all(Array.from({ length: clients }, (_, index) => tenant.client(index)))
  await tidying
  await options.stage.world.eventually(() => tenant.tidy({ everything: true }), lastTidyMs)
}

class Tenant {
  private readonly options: TenantOptions
  /** Creates whose answers have come, or never will: what they made and nobody knows of may go. */
  private readonly settledCreates = new Set<string>()
  private readonly tidyRandom: Random

  constructor(options: TenantOptions) {
    this.options = options
    this.tidyRandom = makeRandom(options.seed * 1000 + 999)
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
    const { account, ledger } = this.options
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
      attempt(ledger, isKeyed ? 'create with a key' : 'create', (signal) =>
        account.call('createSandbox', { headers, body, api, signal }),
      )
    const apis = isKeyed ? Array.from({ length: apiCount }, (_, api) => api) : [anyApi({ random })]
    const outcomes = await Promise.all(apis.map(ask))
    this.settledCreates.add(token)
    const ids = new Set(outcomes.flatMap((outcome) => ('ok' in outcome ? [outcome.ok.body.id] : [])))
    if (ids.size > 1)
      ledger.wrong('one Idempotency-Key made two sandboxes', { token, ids: [...ids] }, [...ids])
    const [id] = ids
    return id === undefined ? undefined : this.entryOf(id)
  }

  private entryOf(id: string): SandboxEntry {
    const { ledger, account } = this.options
    const known = ledger.sandboxes.get(id)
    const entry = known ?? { id, accountId: account.id, isToGo: false, isToldDestroyed: false, commands: [] }
    ledger.sandboxes.set(id, entry)
    return entry
  }

  private async workIn(sandbox: SandboxEntry, random: Random): Promise<void> {
    const { account, ledger, isOver, stage } = this.options
    const lane: Lane = {
      ledger,
      account,
      url: (api) => stage.world.url(api),
      sandbox,
      params: { id: sandbox.id },
      random,
    }
    for (let left = between(random, 4, 16); left > 0 && !isOver(); left--) {
      await pickWeighted(random, works).work(lane)
      await sleep(between(random, 20, 120))
      if (left % 4 === 0 && (await this.isGone(sandbox, random))) return
    }
  }

  private async isGone(sandbox: SandboxEntry, random: Random): Promise<boolean> {
    const { account, ledger } = this.options
    const outcome = await attempt(ledger, 'getSandbox', (signal) =>
      account.call('getSandbox', { params: { id: sandbox.id }, api: anyApi({ random }), signal }),
    )
    return 'ok' in outcome && outcome.ok.body.state === 'destroyed'
  }

  /** Waits for what may yet run, reads which commands did, and destroys it. */
  private async finish(sandbox: SandboxEntry, random: Random): Promise<void> {
    await sleep(lateMs)
    sandbox.ran = await this.readRan(sandbox)
    const { account, ledger } = this.options
    sandbox.isToGo = true
    for (let tried = 0; tried < 200; tried++) {
      const outcome = await attempt(ledger, 'destroy', (signal) =>
        account.call('destroySandbox', { params: { id: sandbox.id }, api: anyApi({ random }), signal }),
      )
      if ('ok' in outcome) {
        sandbox.isToldDestroyed = true
        return
      }
      await sleep(300)
    }
    ledger.wrong('a sandbox could not be destroyed', { sandbox: sandbox.id }, [sandbox.id])
  }

  /** Past everything that the faults harm. @returns undefined when the sandbox is gone */
  private async readRan({ id }: SandboxEntry): Promise<Map<string, number[]> | undefined> {
    const { driver } = this.options.stage
    for (let tried = 0; tried < 3; tried++) {
      try {
        const pod = (await driver.list()).find(({ sandboxId, death }) => sandboxId === id && !death)
        if (!pod) return undefined
        const { stdout, code } = await runInPod(driver, pod, shell('cat "$HOME/ran" 2>/dev/null; echo end'))
        if (code === 0 && stdout.endsWith('end\n')) return parseRan(stdout)
      } catch {
        // It is dying, or the wire to it is harmed.
      }
      await sleep(500)
    }
    return undefined
  }

  async tidyForEver(): Promise<void> {
    while (!this.options.isOver()) {
      await sleep(tidyEveryMs)
      await this.tidy({ everything: false })
    }
  }

  /** Destroys what was made and told nobody. @returns whether nothing is left */
  async tidy({ everything }: { everything: boolean }): Promise<boolean> {
    const { account, ledger } = this.options
    const ask = { random: this.tidyRandom }
    const outcome = await attempt(ledger, 'listSandboxes', (signal) =>
      account.call('listSandboxes', { query: { state: 'active' }, api: anyApi(ask), signal }),
    )
    if ('failed' in outcome) return false
    const { data } = outcome.ok.body
    if (data.length > cap) {
      ledger.wrong('a list shows more than the quota', { ids: data.map(({ id }) => id) })
    }
    for (const { id, metadata } of data) {
      const isUnknown = !ledger.sandboxes.has(id) && this.settledCreates.has(metadata.token ?? '')
      if (!isUnknown && !everything) continue
      this.entryOf(id).isToGo = true
      await attempt(ledger, 'destroy what nobody knows', (signal) =>
        account.call('destroySandbox', { params: { id }, api: anyApi(ask), signal }),
      )
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
