/**
 * Bounds the memory that JSON of requests and answers takes in one API process: in all, and for each account. So nobody
 * who sends much, or reads slowly, leaves nothing for the others.
 */
import { Problem, unavailable } from '../../shared/platform/problem.ts'

/** Bytes. What is made of a body (text, values, what goes to a worker) takes several times as much. */
const mostOfAll = 256 * 1024 * 1024
/** For one account: six of the largest bodies at once. */
const mostOfAccount = 64 * 1024 * 1024
/** For all who are not authenticated together. A sign-up takes a few KiB. */
const mostOfStrangers = 16 * 1024 * 1024

export type HeldBytes = ReturnType<BodyBudget['open']>

export class BodyBudget {
  private readonly ofOwner = new Map<string | undefined, number>()
  private ofAll = 0

  /** @param accountId undefined for a stranger */
  open(accountId: string | undefined) {
    const most = accountId === undefined ? mostOfStrangers : mostOfAccount
    const owned = () => this.ofOwner.get(accountId) ?? 0
    let held = 0
    let isOver = false
    const count = (bytes: number) => {
      held += bytes
      this.ofAll += bytes
      this.ofOwner.set(accountId, owned() + bytes)
      if (owned() <= 0) this.ofOwner.delete(accountId)
    }
    return {
      /** @throws {Problem} `rate_limited` when the account's share is used up, `unavailable` when the whole budget is */
      add: (bytes: number): void => {
        if (isOver) return
        if (owned() + bytes > most) throw tooMuch(accountId)
        if (this.ofAll + bytes > mostOfAll) throw tooMuchOfAll()
        count(bytes)
      },
      /** Gives all of it back. Nothing is counted after that. */
      free: (): void => {
        isOver = true
        count(-held)
      },
    }
  }
}

const tooMuchOfAll = () =>
  unavailable('Too many large bodies are being taken right now. Try again in a moment.')

const tooMuch = (accountId: string | undefined) =>
  accountId === undefined
    ? tooMuchOfAll()
    : new Problem(
        'rate_limited',
        `The requests of this account that run, and answers that it has yet to read, have ${mostOfAccount} bytes together. Wait for one of them, or send and read bytes raw.`,
        { retryAfterSeconds: 1 },
      )
