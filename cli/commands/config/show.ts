/** `sandlot config show`: each setting, and where it comes from. */
import { readAddress } from '../../core/address.ts'
import { addSessionOption, defineCommand } from '../../core/command.ts'
import { fields } from '../../core/output.ts'
import { blankKey, destinationOf } from '../../core/saved-keys.ts'
import { chosenSession } from '../../core/session.ts'
import type { FoundSetting } from '../../core/settings.ts'

export const define = defineCommand({
  declare: (command) => addSessionOption(command),
  examples: ['sandlot config show', 'sandlot config show --profile work --json=base_url,api_key'],
  fields: ['base_url', 'api_key', 'session', 'file', 'profile', 'profiles'],
  handle: async ({ settings, output }) => {
    const base_url = await settings.find('url')
    const session = await chosenSession(settings)
    // An address that no command would use must not look like one that works.
    const address = base_url && readAddress(base_url.value, base_url.source)
    const api_key = blank(await settings.findKey(address))
    const own = (await settings.savedKeys()).find(({ profile }) => profile === settings.profile)
    const elsewhere = api_key === undefined && own ? `  (${destinationOf(own, settings.file)})` : ''
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
        api_key: `${line(api_key)}${elsewhere}`,
        session: line(session),
        file,
        profile: profile ?? undefined,
        profiles: profiles.length === 0 ? undefined : profiles.join(', '),
      }),
    )
  },
})

const blank = (found: FoundSetting | undefined): FoundSetting | undefined =>
  found && { ...found, value: blankKey(found.value) }

const line = (found: FoundSetting | undefined): string =>
  found ? `${found.value}  (${found.source})` : 'not set'
