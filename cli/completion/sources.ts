/** Values that only the service or the settings file knows. Never fails: without an answer there are none. */
import { posix } from 'node:path'
import { createApi } from '../core/api.ts'
import { selectSession } from '../core/session.ts'
import { Settings } from '../core/settings.ts'
import type { Candidate, Sources } from './candidates.ts'

/** The user waits for it. */
const patienceMs = 2_000

/** @param options those that stand on the line, the client's settings among them */
export function openSources(options: Record<string, string>): Sources {
  const settings = () => new Settings(options)
  const api = () => createApi(settings())
  return {
    sessions: () =>
      attempt(async () => {
        const { data } = await api().call('listSandboxes', { query: { state: 'active', limit: 100 } })
        return data.map(({ id, name, image }) => ({ value: id, description: name ?? image }))
      }),
    paths: (typed) =>
      attempt(async () => {
        const id = await selectSession(settings(), api())
        const folder = typed.slice(0, typed.lastIndexOf('/') + 1)
        const path = options.cwd === undefined ? folder : posix.join(options.cwd, folder)
        const query = path === '' ? {} : { path }
        const { entries } = await api().call('listFiles', { params: { id }, query })
        const isAskedFor = (name: string) => !name.startsWith('.') || typed.startsWith('.', folder.length)
        return entries
          .filter(({ name, name_base64 }) => name_base64 === undefined && isAskedFor(name))
          .map(({ name, type }) => ({ value: `${folder}${name}${type === 'directory' ? '/' : ''}` }))
      }),
    profiles: () => attempt(async () => (await settings().profiles()).map((value) => ({ value }))),
  }
}

async function attempt(ask: () => Promise<Candidate[]>): Promise<Candidate[]> {
  const late = new Promise<Candidate[]>((resolve) => setTimeout(resolve, patienceMs, []).unref())
  return await Promise.race([ask().catch(() => []), late])
}
