import { posix } from 'node:path'
import type { Sandbox } from '../../shared/contract/sandboxes.ts'
import { withTimeout } from '../../shared/lib/timeout.ts'
import { createApi } from '../core/api.ts'
import { oneLine } from '../core/printable.ts'
import { selectSession } from '../core/session.ts'
import { Settings } from '../core/settings.ts'

export interface Candidate {
  value: string
  description?: string | undefined
}

const timeoutMs = 2_000

/**
 * Returns functions that load completion values from the service or the settings file. On an error or a
 * timeout, each function returns an empty list.
 * @param options the options on the command line, including global options such as --url
 */
export function openSources(options: Record<string, string>) {
  const settings = () => new Settings(options)
  const api = () => createApi(settings())
  return {
    /**
     * Suggests each session by name, or by id if its name is missing, ambiguous or cannot be typed. Once the
     * user has typed something, suggests both.
     */
    sessions: (typed: string) =>
      attempt(async () => {
        const { data } = await api().call('listSandboxes', { query: { state: 'active', limit: 100 } })
        return data.flatMap(({ id, name, image }) => {
          const asId = { value: id, description: name ?? image }
          if (!isHandle(name, data)) return [asId]
          const asName = { value: name, description: id }
          return typed === '' ? [asName] : [asName, asId]
        })
      }),
    /** Returns remote paths, relative to --cwd or, by default, /workspace. */
    paths: (typed: string) =>
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
    commands: () =>
      attempt(async () => {
        const id = await selectSession(settings(), api())
        const { data } = await api().call('listExecs', { params: { id }, query: { limit: 100 } })
        return data.map(({ id, status, command }) => ({ value: id, description: `${status} ${command}` }))
      }),
    profiles: () => attempt(async () => (await settings().profiles()).map((value) => ({ value }))),
  }
}

/** Returns whether a name can be typed on a command line and identifies exactly one session. */
const isHandle = (name: string | null, sessions: Sandbox[]): name is string =>
  name !== null &&
  !/^-|^sbx_/.test(name) &&
  name === oneLine(name) &&
  sessions.filter((each) => each.name === name).length === 1

const attempt = async (load: () => Promise<Candidate[]>): Promise<Candidate[]> =>
  (await withTimeout(timeoutMs, load()).catch(() => undefined)) ?? []
