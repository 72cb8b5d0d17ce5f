/** `sandlot config show`: each setting, and where it comes from. */
import { readAddress } from '../../core/address.ts'
import {
  addExamples,
  addSessionOption,
  type Define,
  handleWith,
  type Invocation,
} from '../../core/command.ts'
import { fields } from '../../core/output.ts'
import type { FoundSetting } from '../../core/settings.ts'

export const define: Define = (command) => {
  addSessionOption(command)
  addExamples(command, 'sandlot config show', 'sandlot config show --profile work --json=base_url,api_key')
  const json = { fields: ['base_url', 'api_key', 'session', 'file', 'profile', 'profiles'] }
  const handle = async ({ settings, output }: Invocation<object>) => {
    const base_url = await settings.find('url')
    const api_key = blank(await settings.find('apiKey'))
    const session = await settings.find('session')
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
    const { describeExposure } = await import('../../core/config-file.ts')
    const exposure = await describeExposure(settings.file)
    if (exposure !== undefined) output.note(`Warning: ${exposure}`)
  }
  handleWith(command, handle, { json })
}

/** All but the last four characters. A text too short for a key is blanked whole. */
export const blank = (found: FoundSetting | undefined): FoundSetting | undefined =>
  found && { ...found, value: `…${found.value.length >= 20 ? found.value.slice(-4) : ''}` }

const line = (found: FoundSetting | undefined): string =>
  found ? `${found.value}  (${found.source})` : 'not set'
