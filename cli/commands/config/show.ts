import { readAddress } from '../../core/address.ts'
import { addSessionOption, defineCommand } from '../../core/command.ts'
import { type CliError, describeError } from '../../core/errors.ts'
import { fields } from '../../core/output.ts'
import { destinationOf, maskKey } from '../../core/saved-keys.ts'
import { chosenSession } from '../../core/session.ts'
import type { FoundSetting } from '../../core/settings.ts'

export const define = defineCommand({
  declare: (command) => addSessionOption(command),
  notes: '\nIf a value is invalid, the other values are still shown, and the exit code is 2.',
  examples: ['sandlot config show', 'sandlot config show --profile work --json=base_url,api_key'],
  fields: ['base_url', 'api_key', 'session', 'file', 'profile', 'profiles'],
  handle: async ({ settings, output }) => {
    const problems: CliError[] = []
    /** Reads a setting. Collects errors in `problems`, so that the other settings are still shown. */
    async function attempt<T>(read: () => T | Promise<T>): Promise<T | undefined> {
      try {
        return await read()
      } catch (error) {
        problems.push(describeError(error))
        return undefined
      }
    }
    const url = await attempt(() => settings.find('url'))
    const session = await chosenSession(settings)
    // A rejected address is not shown as a setting.
    const address = url && (await attempt(() => readAddress(url.value, url.source)))
    const api_key = mask(await attempt(() => settings.findKey(address)))
    const saved = (await attempt(() => settings.savedKeys())) ?? []
    const own = saved.find(({ profile }) => profile === settings.profile)
    const elsewhere = api_key === undefined && own ? `  (${destinationOf(own, settings.file)})` : ''
    const { file, profile = null } = settings
    const profiles = (await attempt(() => settings.profiles())) ?? []
    const base_url = address === undefined ? null : url!
    const shown = { base_url, api_key: api_key ?? null, session: session ?? null, file, profile, profiles }
    const [problem] = problems
    if (!problem || !output.json) {
      output.result(
        shown,
        fields({
          base_url: url && base_url === null ? `refused  (${url.source})` : line(url),
          api_key: `${line(api_key)}${elsewhere}`,
          session: line(session),
          file,
          profile: profile ?? undefined,
          profiles: profiles.length === 0 ? undefined : profiles.join(', '),
        }),
      )
    }
    if (problem) throw problem.with({ details: { ...problem.details, ...shown } })
  },
})

const mask = (found: FoundSetting | undefined): FoundSetting | undefined =>
  found && { ...found, value: maskKey(found.value) }

const line = (found: FoundSetting | undefined): string =>
  found ? `${found.value}  (${found.source})` : 'not set'
