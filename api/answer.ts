/** An answer in JSON: whoever asked for it must take it, since until then it is held here. */
import type { Context as KoaContext } from 'koa'
import type { HeldBytes } from './body-budget.ts'
import { toJson } from './own-turn.ts'

/** How long nothing of it may be taken, and how long all of it may last. */
const idleMs = 20_000
const wholeMs = 300_000

/**
 * @param held counts it for the account; a stranger's answers are small, or rare
 * @throws {Problem} when the account has yet to read too many others
 */
export async function replyWithJson(
  koa: KoaContext,
  reply: object,
  held: HeldBytes | undefined,
): Promise<void> {
  const bytes = Buffer.from(await toJson(reply))
  held?.add(bytes.length)
  koa.type = 'application/json'
  koa.body = bytes
  // Node counts a part that was taken as life, and sets its own time again behind the answer.
  koa.res.setTimeout(idleMs)
  const late = setTimeout(() => koa.res.destroy(), wholeMs)
  koa.res.once('close', () => clearTimeout(late))
}
