/**
 * The memory budget of a process: the bytes that it holds for clients, by account and by kind. Bytes are reserved before
 * they are allocated. Each account has a limit, and so have all accounts together. Kept output is only added up here:
 * workers drop it instead of refusing requests (workers/exec/registry.ts).
 */
import type { Logger } from './log.ts'
import { Problem, unavailable } from './problem.ts'

export const heldKinds = [
  'requests',
  'answers',
  'stdin',
  'streams',
  'uploads',
  'websockets',
  'output',
] as const
export type HeldKind = (typeof heldKinds)[number]
type StreamKind = 'streams' | 'uploads'
/** Kinds of which an account may have only so many open. */
type LimitedKind = StreamKind | 'requests'

/** Bytes. */
export interface MemoryLimits {
  ofAccount: number
  ofAll: number
}

/** Buffers of one streamed answer or upload in this process, in bytes. */
const streamBytes = 128 * 1024
/** The share of an account's limit for all unauthenticated requests together. A sign-up takes a few KiB. */
const unauthenticatedShare = 1 / 4
/** Above the limit of all accounts, those that do not hold most may use this share of it. */
const reserveShare = 1 / 4
/** Milliseconds between two log lines about the same account. */
const logEveryMs = 10_000

interface Held {
  bytes: number
  open: Map<HeldKind, number>
  loggedAt: number
}

export class MemoryBudget {
  /** Bytes of all accounts, by kind. */
  readonly sums = Object.fromEntries(heldKinds.map((kind) => [kind, 0])) as Record<HeldKind, number>
  readonly bounds: MemoryLimits
  private readonly log: Logger
  private readonly ofOwner = new Map<string | undefined, Held>()
  private ofAll = 0

  constructor(bounds: MemoryLimits, log: Logger) {
    this.bounds = bounds
    this.log = log
  }

  /**
   * Opens a holding without bytes.
   * @param accountId undefined for an unauthenticated request
   */
  open(accountId: string | undefined, kind: HeldKind): Reservation {
    const owner = this.ofOwner.get(accountId) ?? {
      bytes: 0,
      open: new Map(),
      loggedAt: Number.NEGATIVE_INFINITY,
    }
    owner.open.set(kind, (owner.open.get(kind) ?? 0) + 1)
    this.ofOwner.set(accountId, owner)
    return new Reservation(this, accountId, owner, kind)
  }

  /** @throws {Problem} `rate_limited` when the account has `maxOpen` of this kind open */
  openLimited(accountId: string, kind: LimitedKind, maxOpen: number): Reservation {
    const openCount = this.ofOwner.get(accountId)?.open.get(kind) ?? 0
    if (openCount >= maxOpen) throw tooManyOpen(kind, maxOpen)
    return this.open(accountId, kind)
  }

  /**
   * Opens a holding for the buffers of a stream.
   * @throws {Problem} `rate_limited` when the account has too many open, or holds too much; `unavailable`
   */
  openStream(accountId: string, kind: StreamKind, maxOpen = Number.POSITIVE_INFINITY): Reservation {
    const holding = this.openLimited(accountId, kind, maxOpen)
    try {
      holding.add(streamBytes)
      return holding
    } catch (error) {
      holding.free()
      throw error
    }
  }

  /** Called only by holdings, as are the two below. */
  take(accountId: string | undefined, owner: Held, kind: HeldKind, bytes: number): void {
    const { ofAccount, ofAll } = this.bounds
    const most = accountId === undefined ? ofAccount * unauthenticatedShare : ofAccount
    const wanted = owner.bytes + bytes
    if (wanted > most) throw this.refusal(accountId, owner, kind, most)
    const over = this.ofAll + bytes - ofAll
    if (over > 0 && (over > ofAll * reserveShare || this.holdsMost(owner, wanted))) {
      throw this.refusal(accountId, owner, kind, undefined)
    }
    this.count(owner, kind, bytes)
  }

  close(accountId: string | undefined, owner: Held, kind: HeldKind): void {
    const left = owner.open.get(kind)! - 1
    if (left > 0) owner.open.set(kind, left)
    else owner.open.delete(kind)
    if (owner.open.size === 0) this.ofOwner.delete(accountId)
  }

  count(owner: Held, kind: HeldKind, bytes: number): void {
    owner.bytes += bytes
    this.ofAll += bytes
    this.sums[kind] += bytes
  }

  /** Whether no other account would hold more. Called only when memory is short. */
  private holdsMost(owner: Held, wanted: number): boolean {
    for (const other of this.ofOwner.values()) if (other !== owner && other.bytes >= wanted) return false
    return true
  }

  private refusal(accountId: string | undefined, owner: Held, kind: HeldKind, most: number | undefined) {
    if (performance.now() - owner.loggedAt > logEveryMs) {
      owner.loggedAt = performance.now()
      const held = { account_id: accountId, kind, held_bytes: owner.bytes, held_by_all: this.ofAll }
      this.log.warn(held, 'refused an account that holds too much memory')
    }
    if (accountId === undefined) return shortOfMemory()
    return most === undefined ? holdsMost() : tooMuch(most)
  }
}

/** Bytes of one account and one kind. */
export class Reservation {
  private bytes = 0
  private isOver = false
  private readonly memoryBudget: MemoryBudget
  readonly accountId: string | undefined
  private readonly owner: Held
  private readonly kind: HeldKind

  constructor(memoryBudget: MemoryBudget, accountId: string | undefined, owner: Held, kind: HeldKind) {
    this.memoryBudget = memoryBudget
    this.accountId = accountId
    this.owner = owner
    this.kind = kind
  }

  /** @throws {Problem} `rate_limited` for an account above a limit, `unavailable` for an unauthenticated request */
  add(bytes: number): void {
    if (this.isOver) return
    this.memoryBudget.take(this.accountId, this.owner, this.kind, bytes)
    this.bytes += bytes
  }

  /** Adds the bytes if there is room for them. Returns whether there was. */
  tryAdd(bytes: number): boolean {
    try {
      this.add(bytes)
      return true
    } catch {
      return false
    }
  }

  /** Moves bytes into a new holding of another kind, which may last longer. */
  move(kind: HeldKind, bytes: number): Reservation {
    const other = this.memoryBudget.open(this.accountId, kind)
    this.give(bytes)
    other.bytes = bytes
    this.memoryBudget.count(this.owner, kind, bytes)
    return other
  }

  give(bytes: number): void {
    if (this.isOver) return
    this.bytes -= bytes
    this.memoryBudget.count(this.owner, this.kind, -bytes)
  }

  /** Releases all bytes. Nothing is counted after that. */
  free(): void {
    if (this.isOver) return
    this.isOver = true
    this.memoryBudget.count(this.owner, this.kind, -this.bytes)
    this.memoryBudget.close(this.accountId, this.owner, this.kind)
  }
}

const tooMuch = (most: number) =>
  new Problem(
    'rate_limited',
    `This account's requests that run, answers and output that it has yet to read, and stdin that its commands have ` +
      `yet to read may have ${most} bytes together. Wait for one of them, or send and read less at once.`,
    { retryAfterSeconds: 1 },
  )

const holdsMost = () =>
  new Problem(
    'rate_limited',
    'The service is short of memory, and this account holds most of it. Wait until one of its requests is over.',
    { retryAfterSeconds: 2 },
  )

const shortOfMemory = () => unavailable('The service is short of memory right now. Try again in a moment.')

function tooManyOpen(kind: LimitedKind, maxOpen: number): Problem {
  const details: Record<LimitedKind, string> = {
    requests: `This account has ${maxOpen} requests open here. Wait until one of them is over.`,
    streams: `This account has ${maxOpen} streamed answers open at one worker. Read one of them to its end, or close it, then try again.`,
    uploads: `This account has ${maxOpen} uploads open at one worker. Finish or cancel one of them, then try again.`,
  }
  return new Problem('rate_limited', details[kind], { retryAfterSeconds: 1 })
}
