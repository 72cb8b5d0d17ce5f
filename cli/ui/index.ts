/** Opens the picker: what is drawn with is loaded here, so that plain commands do not pay for it. */
import { leave } from '../core/leaving.ts'
import { type ColorChoice, createSettings, type Flags, wantsColor } from '../core/settings.ts'

/** @returns the exit code @throws {CliError} for settings that are wrong */
export async function openPicker(flags: Flags & { color?: ColorChoice }): Promise<number> {
  // Ink's colours know FORCE_COLOR alone, and read it as they are loaded.
  if (!wantsColor(process.stdout, flags.color)) process.env.FORCE_COLOR = '0'
  const { runPicker } = await import('./run.tsx')
  const code = await runPicker(createSettings(flags, process.env, { mayBeNew: true }))
  // A service that does not answer must not keep us.
  await leave(code)
  return code
}
