/** `sandlot config show`: each setting, and where it comes from. */
import { readAddress } from '../../core/address.ts'
import { addSessionOption, defineCommand } from '../../core/command.ts'
import { fields } from '../../core/output.ts'
import { chosenSession } from '../../core/session.ts'
import type { FoundSetting } from '../../core/settings.ts'

export const define = defineCommand({
  declare: (command) => addSessionOption(command),
  examples: ['sandlot config show', 'sandlot config show --profile work --json=base_url,api_key'],
  fields: ['base_url', 'api_key', 'session', 'file', 'profile', 'profiles'],
  handle: async ({ settings, output }) => {
    const base_url = await settings.find('url')
    const api_key = blank(await settings.find('apiKey'))
    const session = await chosenSession(settings)
    // An address that no command would use must not look like one that works.
    if (base_url !== undefined) readAddress(base_url.value, base_url.source)
    const { file, profile = null } = settings
    const profiles = await settings.profiles()
    output.result(
      {
        base_url: base_url ?? null,
        api_key: api_key ?? null,
        session: session ?? null,
        file,
        profile,
        profiles,
      },
      fields({
        base_url: line(base_url),
        api_key: line(api_key),
        session: line(session),
        file,
        profile: profile ?? undefined,
        profiles: profiles.length === 0 ? undefined : profiles.join(', '),
      }),
    )
  },
})

/** All but the last four characters. A text too short for a key is blanked whole. */
export const blank = (found: FoundSetting | undefined): FoundSetting | undefined =>
  found && { ...found, value: `…${found.value.length >= 20 ? found.value.slice(-4) : ''}` }

const line = (found: FoundSetting | undefined): string =>
  found ? `${found.value}  (${found.source})` : 'not set'
