import { type ColorChoice, wantsColor } from '../core/drawing.ts'
import { type Flags, Settings } from '../core/settings.ts'
import { leave } from '../core/shutdown.ts'

/**
 * Opens the picker, the interface that `sandlot` shows on a terminal without a command. Loads Ink on demand.
 * @returns the exit code
 * @throws {CliError} if the settings are invalid
 */
export async function openPicker(flags: Flags & { color?: ColorChoice }): Promise<number> {
  // Ink reads only FORCE_COLOR, when it is loaded.
  if (!wantsColor(process.stdout, flags.color)) process.env.FORCE_COLOR = '0'
  const { runPicker } = await import('./run.tsx')
  // Printed after the picker has closed.
  let warning = ''
  const warn = (text: string) => {
    warning = `${text}\n`
  }
  const code = await runPicker(new Settings(flags, process.env, { mayBeNew: true, warn }))
  process.stderr.write(warning)
  // An unanswered request must not keep the process alive.
  await leave(code)
  return code
}
