/** Answers in JSON. An answer takes memory until its client has read it, so that time is limited. */
import type { Context as KoaContext } from 'koa'
import type { Holding } from '../../shared/platform/ledger.ts'
import { onceClosed } from '../../shared/platform/sockets.ts'

/** Milliseconds in which the client must have read the answer. */
const wholeMs = 300_000

/**
 * @param held counts the bytes for the account. Answers to strangers are small or rare, and not counted
 * @throws {Problem} when the account has too many unread answers
 */
export async function replyWithJson(
  koa: KoaContext,
  reply: object,
  held: Holding | undefined,
): Promise<void> {
  const bytes = Buffer.from(JSON.stringify(reply))
  held?.add(bytes.length)
  koa.type = 'application/json'
  koa.body = bytes
  const late = setTimeout(() => koa.res.destroy(), wholeMs)
  onceClosed(koa.res, () => clearTimeout(late))
}
