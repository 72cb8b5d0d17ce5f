/**
 * The memory budget of a process for data of clients, by account and kind. Bytes are reserved before they are
 * allocated. Each account and all accounts together have a limit. Output of commands is counted but never refused:
 * workers drop old output instead (workers/exec/registry.ts).
 */
import type { Logger } from './log.ts'
import { Problem, unavailable } from './problem.ts'

export const memoryKinds = [
  'requests',
  'answers',
  'stdin',
  'streams',
  'uploads',
  'websockets',
  'output',
] as const
export type MemoryKind = (typeof memoryKinds)[number]
type StreamKind = 'streams' | 'uploads'
/** Kinds with a limit on the number of open reservations of an account. */
type LimitedKind = StreamKind | 'requests'

/** Bytes. */
export interface MemoryLimits {
  ofAccount: number
  ofAll: number
}

/** Bytes of the buffers of one streamed answer or upload. */
const streamBytes = 128 * 1024
/** The part of an account's limit that all unauthenticated requests share. A sign-up takes a few KiB. */
const unauthenticatedShare = 1 / 4
/** The additional part of the total limit, which is available to all accounts except the one that holds most. */
const reserveShare = 1 / 4
/** Milliseconds between two log messages about the same account. */
const logEveryMs = 10_000

interface AccountMemory {
  bytes: number
  open: Map<MemoryKind, number>
  loggedAt: number
}

export class MemoryBudget {
  /** The bytes of all accounts, by kind. */
  readonly sums = Object.fromEntries(memoryKinds.map((kind) => [kind, 0])) as Record<MemoryKind, number>
  readonly limits: MemoryLimits
  private readonly log: Logger
  private readonly ofOwner = new Map<string | undefined, AccountMemory>()
  private ofAll = 0

  constructor(limits: MemoryLimits, log: Logger) {
    this.limits = limits
    this.log = log
  }

  /**
   * Opens a reservation without bytes.
   * @param accountId undefined for an unauthenticated request
   */
  open(accountId: string | undefined, kind: MemoryKind): Reservation {
    const owner = this.ofOwner.get(accountId) ?? {
      bytes: 0,
      open: new Map(),
      loggedAt: Number.NEGATIVE_INFINITY,
    }
    owner.open.set(kind, (owner.open.get(kind) ?? 0) + 1)
    this.ofOwner.set(accountId, owner)
    return new Reservation(this, accountId, owner, kind)
  }

  /** @throws {Problem} `rate_limited` if the account has `maxOpen` reservations of this kind */
  openLimited(accountId: string, kind: LimitedKind, maxOpen: number): Reservation {
    const openCount = this.ofOwner.get(accountId)?.open.get(kind) ?? 0
    if (openCount >= maxOpen) throw tooManyOpen(kind, maxOpen)
    return this.open(accountId, kind)
  }

  /**
   * Opens a reservation for the buffers of a stream.
   * @throws {Problem} `rate_limited` if the account has too many open or is above a limit
   */
  openStream(accountId: string, kind: StreamKind, maxOpen = Number.POSITIVE_INFINITY): Reservation {
    const reservation = this.openLimited(accountId, kind, maxOpen)
    try {
      reservation.add(streamBytes)
      return reservation
    } catch (error) {
      reservation.free()
      throw error
    }
  }

  /** Called only by reservations, as are `close` and `count`. */
  take(accountId: string | undefined, owner: AccountMemory, kind: MemoryKind, bytes: number): void {
    const { ofAccount, ofAll } = this.limits
    const limit = accountId === undefined ? ofAccount * unauthenticatedShare : ofAccount
    const wanted = owner.bytes + bytes
    if (wanted > limit) throw this.refusal(accountId, owner, kind, limit)
    const over = this.ofAll + bytes - ofAll
    if (over > 0 && (over > ofAll * reserveShare || this.holdsMost(owner, wanted))) {
      throw this.refusal(accountId, owner, kind, undefined)
    }
    this.count(owner, kind, bytes)
  }

  close(accountId: string | undefined, owner: AccountMemory, kind: MemoryKind): void {
    const left = owner.open.get(kind)! - 1
    if (left > 0) owner.open.set(kind, left)
    else owner.open.delete(kind)
    if (owner.open.size === 0) this.ofOwner.delete(accountId)
  }

  count(owner: AccountMemory, kind: MemoryKind, bytes: number): void {
    owner.bytes += bytes
    this.ofAll += bytes
    this.sums[kind] += bytes
  }

  /** Whether no other account holds as much. Called only above the total limit. */
  private holdsMost(owner: AccountMemory, wanted: number): boolean {
    for (const other of this.ofOwner.values()) if (other !== owner && other.bytes >= wanted) return false
    return true
  }

  private refusal(
    accountId: string | undefined,
    owner: AccountMemory,
    kind: MemoryKind,
    limit: number | undefined,
  ) {
    if (performance.now() - owner.loggedAt > logEveryMs) {
      owner.loggedAt = performance.now()
      const held = { account_id: accountId, kind, held_bytes: owner.bytes, held_by_all: this.ofAll }
      this.log.warn(held, 'refused a request: the account is above its memory budget')
    }
    if (accountId === undefined) return shortOfMemory()
    return limit === undefined ? holdsMost() : tooMuch(limit)
  }
}

/** Reserved bytes of one account and kind. */
export class Reservation {
  private bytes = 0
  private isOver = false
  private readonly memoryBudget: MemoryBudget
  readonly accountId: string | undefined
  private readonly owner: AccountMemory
  private readonly kind: MemoryKind

  constructor(
    memoryBudget: MemoryBudget,
    accountId: string | undefined,
    owner: AccountMemory,
    kind: MemoryKind,
  ) {
    this.memoryBudget = memoryBudget
    this.accountId = accountId
    this.owner = owner
    this.kind = kind
  }

  /** @throws {Problem} above a limit: `rate_limited`, or `unavailable` for an unauthenticated request */
  add(bytes: number): void {
    if (this.isOver) return
    this.memoryBudget.take(this.accountId, this.owner, this.kind, bytes)
    this.bytes += bytes
  }

  /** Adds the bytes and returns true, or returns false above a limit. */
  tryAdd(bytes: number): boolean {
    try {
      this.add(bytes)
      return true
    } catch {
      return false
    }
  }

  /** Moves bytes to a new reservation of another kind, which may live longer. */
  move(kind: MemoryKind, bytes: number): Reservation {
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

  /** Releases all bytes, and ignores later changes. */
  free(): void {
    if (this.isOver) return
    this.isOver = true
    this.memoryBudget.count(this.owner, this.kind, -this.bytes)
    this.memoryBudget.close(this.accountId, this.owner, this.kind)
  }
}

const tooMuch = (limit: number) =>
  new Problem(
    'rate_limited',
    `This account's open requests, unread answers and output, and unread stdin may have ${limit} bytes together. ` +
      'Wait until one of them is complete, or transfer less data concurrently.',
    { retryAfterSeconds: 1 },
  )

const holdsMost = () =>
  new Problem(
    'rate_limited',
    'The service is short of memory, and this account uses the most. Retry after one of its requests is complete.',
    { retryAfterSeconds: 2 },
  )

const shortOfMemory = () => unavailable('The service is short of memory. Try again in a moment.')

function tooManyOpen(kind: LimitedKind, maxOpen: number): Problem {
  const details: Record<LimitedKind, string> = {
    requests: `This account has ${maxOpen} open requests. Wait until one of them is complete.`,
    streams: `This account has ${maxOpen} streamed answers open at one worker. Read one to the end or close it, then try again.`,
    uploads: `This account has ${maxOpen} uploads open at one worker. Finish or cancel one, then try again.`,
  }
  return new Problem('rate_limited', details[kind], { retryAfterSeconds: 1 })
}
