/** `sandlot config show`: each setting, and where it comes from. */
import { readAddress } from '../../address.ts'
import { addSessionOption, type Define, handleWith } from '../../command.ts'
import { fields } from '../../output.ts'
import type { Found } from '../../settings.ts'

export const define: Define = (command) => {
  addSessionOption(command)
  handleWith(command, async ({ settings, output }) => {
    const base_url = await settings.find('url')
    const api_key = blank(await settings.find('apiKey'))
    const session = await settings.find('session')
    // An address that no command would use must not look like one that works.
    if (base_url !== undefined) readAddress(base_url.value, base_url.source)
    output.result(
      { base_url: base_url ?? null, api_key: api_key ?? null, session: session ?? null, file: settings.file },
      fields({
        base_url: line(base_url),
        api_key: line(api_key),
        session: line(session),
        file: settings.file,
      }),
    )
    const { describeExposure } = await import('../../config-file.ts')
    const exposure = await describeExposure(settings.file)
    if (exposure !== undefined) output.note(`Warning: ${exposure}`)
  })
}

/** All but the last four characters. A text too short for a key is blanked whole. */
const blank = (found: Found | undefined): Found | undefined =>
  found && { ...found, value: `…${found.value.length >= 20 ? found.value.slice(-4) : ''}` }

const line = (found: Found | undefined): string => (found ? `${found.value}  (${found.source})` : 'not set')
