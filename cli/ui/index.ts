/** Opens the picker. The drawing code is loaded here, so that plain commands do not pay for it. */

import { type ColorChoice, wantsColor } from '../core/drawing.ts'
import { leave } from '../core/leaving.ts'
import { type Flags, Settings } from '../core/settings.ts'

/** @returns the exit code @throws {CliError} for settings that are wrong */
export async function openPicker(flags: Flags & { color?: ColorChoice }): Promise<number> {
  // Ink reads only FORCE_COLOR, and reads it when it is loaded.
  if (!wantsColor(process.stdout, flags.color)) process.env.FORCE_COLOR = '0'
  const { runPicker } = await import('./run.tsx')
  // Where it could be read, behind the picker's screen.
  let warning = ''
  const warn = (text: string) => {
    warning = `${text}\n`
  }
  const code = await runPicker(new Settings(flags, process.env, { mayBeNew: true, warn }))
  process.stderr.write(warning)
  // A request without an answer must not keep the process.
  await leave(code)
  return code
}
