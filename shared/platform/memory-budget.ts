/**
 * Limits the memory used by each account and by all accounts. Bytes are reserved before they are allocated.
 * Command output is counted but never refused, because workers drop old output instead
 * (workers/exec/registry.ts).
 */
import { OpenCounts } from '../lib/open-counts.ts'
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

interface MemoryLimits {
  ofAccount: number
  ofAll: number
}

const streamBytes = 128 * 1024
/** Fraction of an account's limit that all unauthenticated requests share. A sign-up needs a few KiB. */
const unauthenticatedShare = 1 / 4
/**
 * Headroom above the budget of all accounts, as a fraction of this budget. While the memory use is within the
 * headroom, only the account using the most memory is refused. Beyond the headroom, all accounts are refused.
 */
const reserveShare = 1 / 4
const logEveryMs = 10_000

interface AccountMemory {
  /** ID of the account. Undefined for all unauthenticated requests together. */
  id: string | undefined
  bytes: number
  open: OpenCounts
  loggedAt: number
}

export class MemoryBudget {
  readonly sums = Object.fromEntries(memoryKinds.map((kind) => [kind, 0])) as Record<MemoryKind, number>
  readonly limits: MemoryLimits
  private readonly log: Logger
  private readonly accounts = new Map<string | undefined, AccountMemory>()
  private ofAll = 0

  constructor(limits: MemoryLimits, log: Logger) {
    this.limits = limits
    this.log = log
  }

  open(id: string | undefined, kind: MemoryKind): Reservation {
    const unused = { id, bytes: 0, open: new OpenCounts(), loggedAt: Number.NEGATIVE_INFINITY }
    const account = this.accounts.get(id) ?? unused
    this.accounts.set(id, account)
    const endUse = account.open.begin(kind)
    return new Reservation(this, account, kind, () => {
      endUse()
      if (account.open.keys.length === 0) this.accounts.delete(id)
    })
  }

  /** @throws {Problem} `rate_limited` if the account already has `maxOpen` open reservations of this kind */
  openLimited(accountId: string, kind: LimitedKind, maxOpen: number): Reservation {
    const openCount = this.accounts.get(accountId)?.open.of(kind) ?? 0
    if (openCount >= maxOpen) throw tooManyOpen(kind, maxOpen)
    return this.open(accountId, kind)
  }

  /** @throws {Problem} `rate_limited` if the account has too many open streams or exceeds its budget */
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

  /**
   * Reserves bytes for an account.
   * @throws {Problem} if a limit would be exceeded
   */
  take(account: AccountMemory, kind: MemoryKind, bytes: number): void {
    const { ofAccount, ofAll } = this.limits
    const limit = account.id === undefined ? ofAccount * unauthenticatedShare : ofAccount
    const wanted = account.bytes + bytes
    if (wanted > limit) throw this.refusal(account, kind, tooMuch(limit))
    const over = this.ofAll + bytes - ofAll
    if (over > 0 && (over > ofAll * reserveShare || this.holdsMost(account, wanted))) {
      throw this.refusal(account, kind, holdsMost())
    }
    this.count(account, kind, bytes)
  }

  count(account: AccountMemory, kind: MemoryKind, bytes: number): void {
    account.bytes += bytes
    this.ofAll += bytes
    this.sums[kind] += bytes
  }

  private holdsMost(account: AccountMemory, wanted: number): boolean {
    return this.accounts.values().every((other) => other === account || other.bytes < wanted)
  }

  private refusal(account: AccountMemory, kind: MemoryKind, problem: Problem): Problem {
    if (performance.now() - account.loggedAt > logEveryMs) {
      account.loggedAt = performance.now()
      const held = { account_id: account.id, kind, held_bytes: account.bytes, held_by_all: this.ofAll }
      this.log.warn(held, 'refused a request: the account is above its memory budget')
    }
    return account.id === undefined ? shortOfMemory() : problem
  }
}

export class Reservation {
  private bytes = 0
  private isOver = false
  private readonly memoryBudget: MemoryBudget
  private readonly account: AccountMemory
  private readonly kind: MemoryKind
  private readonly close: () => void

  constructor(memoryBudget: MemoryBudget, account: AccountMemory, kind: MemoryKind, close: () => void) {
    this.memoryBudget = memoryBudget
    this.account = account
    this.kind = kind
    this.close = close
  }

  get accountId(): string | undefined {
    return this.account.id
  }

  /**
   * Reserves more bytes.
   * @throws {Problem} if a limit is exceeded: `rate_limited`, or `unavailable` for unauthenticated requests
   */
  add(bytes: number): void {
    if (this.isOver) return
    this.memoryBudget.take(this.account, this.kind, bytes)
    this.bytes += bytes
  }

  /** Reserves more bytes even if this exceeds a limit. */
  addAlways(bytes: number): void {
    this.give(-bytes)
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
    const other = this.memoryBudget.open(this.account.id, kind)
    this.give(bytes)
    other.bytes = bytes
    this.memoryBudget.count(this.account, kind, bytes)
    return other
  }

  give(bytes: number): void {
    if (this.isOver) return
    this.bytes -= bytes
    this.memoryBudget.count(this.account, this.kind, -bytes)
  }

  /** Releases all bytes and closes the reservation. Later calls have no effect. */
  free(): void {
    if (this.isOver) return
    this.isOver = true
    this.memoryBudget.count(this.account, this.kind, -this.bytes)
    this.close()
  }
}

const tooMuch = (limit: number) =>
  new Problem(
    'rate_limited',
    `The account's open requests, unread responses, unread output and unread stdin may use ${limit} bytes in total. ` +
      'Wait until one of the requests completes, or transfer less data at once.',
    { retryAfterSeconds: 1 },
  )

const holdsMost = () =>
  new Problem(
    'rate_limited',
    'The service is low on memory, and this account is using the most. Retry after one of its requests completes.',
    { retryAfterSeconds: 2 },
  )

const shortOfMemory = () => unavailable('The service is low on memory. Try again in a moment.')

function tooManyOpen(kind: LimitedKind, maxOpen: number): Problem {
  const details: Record<LimitedKind, string> = {
    requests: `This account has ${maxOpen} open requests. Wait until one of them completes.`,
    streams: `This account has ${maxOpen} streamed responses open on one worker. Read one to the end or close it, then try again.`,
    uploads: `This account has ${maxOpen} uploads open on one worker. Finish or cancel one, then try again.`,
  }
  return new Problem('rate_limited', details[kind], { retryAfterSeconds: 1 })
}
