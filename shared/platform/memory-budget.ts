/**
 * Limits the memory used by each account and by all accounts. Bytes are reserved before they are allocated.
 * Command output is counted but never refused, because workers drop old output instead
 * (workers/exec/registry.ts).
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
type LimitedKind = StreamKind | 'requests'

export interface MemoryLimits {
  ofAccount: number
  ofAll: number
}

const streamBytes = 128 * 1024
/** Fraction of an account's limit that all unauthenticated requests share. A sign-up needs a few KiB. */
const unauthenticatedShare = 1 / 4
/**
 * Fraction by which the accounts' total may exceed the limit of the process. Above the limit, the account
 * that uses the most memory is refused.
 */
const reserveShare = 1 / 4
const logEveryMs = 10_000

interface AccountMemory {
  bytes: number
  open: Map<MemoryKind, number>
  loggedAt: number
}

export class MemoryBudget {
  readonly sums = Object.fromEntries(memoryKinds.map((kind) => [kind, 0])) as Record<MemoryKind, number>
  readonly limits: MemoryLimits
  private readonly log: Logger
  private readonly ofOwner = new Map<string | undefined, AccountMemory>()
  private ofAll = 0

  constructor(limits: MemoryLimits, log: Logger) {
    this.limits = limits
    this.log = log
  }

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

  /** @throws {Problem} `rate_limited` if the account already has `maxOpen` open reservations of this kind */
  openLimited(accountId: string, kind: LimitedKind, maxOpen: number): Reservation {
    const openCount = this.ofOwner.get(accountId)?.open.get(kind) ?? 0
    if (openCount >= maxOpen) throw tooManyOpen(kind, maxOpen)
    return this.open(accountId, kind)
  }

  /**
   * @throws {Problem} `rate_limited` if the account has too many open streams or exceeds its memory budget
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

  /**
   * @throws {Problem} `rate_limited` if a limit is exceeded, or `unavailable` for an unauthenticated request
   */
  add(bytes: number): void {
    if (this.isOver) return
    this.memoryBudget.take(this.accountId, this.owner, this.kind, bytes)
    this.bytes += bytes
  }

  tryAdd(bytes: number): boolean {
    try {
      this.add(bytes)
      return true
    } catch {
      return false
    }
  }

  /** Moves bytes to a new reservation of another kind, which must be freed separately. */
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

  /** Releases all bytes and closes the reservation. Later calls have no effect. */
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
    `The account's open requests, unread responses, unread output and unread stdin may use ${limit} bytes in total. ` +
      'Wait until one of the requests is complete, or transfer less data at once.',
    { retryAfterSeconds: 1 },
  )

const holdsMost = () =>
  new Problem(
    'rate_limited',
    'The service is low on memory, and this account uses the most. Retry after one of its requests is complete.',
    { retryAfterSeconds: 2 },
  )

const shortOfMemory = () => unavailable('The service is low on memory. Try again in a moment.')

function tooManyOpen(kind: LimitedKind, maxOpen: number): Problem {
  const details: Record<LimitedKind, string> = {
    requests: `This account has ${maxOpen} open requests. Wait until one of the requests is complete.`,
    streams: `This account has ${maxOpen} streamed responses open on one worker. Read one to the end or close it, then try again.`,
    uploads: `This account has ${maxOpen} uploads open on one worker. Finish or cancel one, then try again.`,
  }
  return new Problem('rate_limited', details[kind], { retryAfterSeconds: 1 })
}
