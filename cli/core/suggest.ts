/** "Did you mean": sessions whose ids or names resemble one that does not exist. */
import type { Sandbox } from '../../shared/contract/sandboxes.ts'
import type { Api } from './api.ts'
import { addHint, type CliError } from './errors.ts'

/** @returns the error with suggestions; unchanged when nothing is similar or the service cannot be asked */
export async function suggestSessions(error: CliError, api: Api): Promise<CliError> {
  const typed = String(error.details.session)
  const near = await api
    .call('listSandboxes', { query: { state: 'active', limit: 100 } })
    .then(({ data }) => data.filter((session) => isNear(typed, session)))
    .catch(() => [])
  if (near.length === 0) return error
  const words = near.map(({ id, name }) => (name === null ? id : `${id} (${name})`))
  const did_you_mean = near.map(({ id, name }) => ({ id, name }))
  return addHint(error, `Did you mean ${words.join(' or ')}?`, { did_you_mean })
}

/** Whether it is the beginning of the id, has a few letters wrong, or resembles the name. */
function isNear(typed: string, { id, name }: Sandbox): boolean {
  const [wanted, bare] = [typed.toLowerCase(), id.replace(/^sbx_/, '')]
  const isBeginning = wanted.length >= 3 && [id, bare].some((text) => text.startsWith(wanted))
  if (isBeginning || distance(wanted, id) <= 3 || distance(wanted, bare) <= 3) return true
  const known = name?.toLowerCase()
  return (
    known !== undefined &&
    (known.startsWith(wanted) || distance(wanted, known) <= Math.ceil(known.length / 3))
  )
}

/** How many letters have to be put in, left out or changed (Levenshtein). */
function distance(one: string, other: string): number {
  let row = Array.from({ length: other.length + 1 }, (_, index) => index)
  for (const [index, letter] of [...one].entries()) {
    const next = [index + 1]
    for (let at = 1; at <= other.length; at++) {
      const change = row[at - 1]! + (letter === other[at - 1] ? 0 : 1)
      next.push(Math.min(change, row[at]! + 1, next[at - 1]! + 1))
    }
    row = next
  }
  return row[other.length]!
}
