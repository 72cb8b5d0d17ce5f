/** Runs the picker, and restores the terminal afterwards. */
import { render } from 'ink'
import { isReadAloud } from '../core/drawing.ts'
import type { Settings } from '../core/settings.ts'
import { App } from './app.tsx'
import { createUi } from './create-ui.ts'
import { takeSignals } from './signals.ts'
import { drawAgain, suspendPicker } from './suspend.ts'
import { TerminalInput } from './terminal-input.ts'
import { UiContext } from './ui.ts'

/**
 * @returns the exit code
 * @throws {Error} if the picker crashed. The terminal is already restored.
 */
export async function runPicker(settings: Settings): Promise<number> {
  const { promise: left, resolve: leave } = Promise.withResolvers<number>()
  const ui = await createUi(settings, {
    leaveTo: (use) => signals.leaveTo(use),
    write: (sequence) => void process.stdout.write(sequence),
    quit: leave,
  })
  const stdin = new TerminalInput(process.stdin, () => ui.quit())
  const app = render(
    <UiContext value={ui}>
      <App />
    </UiContext>,
    {
      stdin: stdin as unknown as NodeJS.ReadStream,
      // By default, Ink is not interactive if CI is set.
      interactive: true,
      // Screen readers need plain text.
      alternateScreen: !isReadAloud(),
      incrementalRendering: true,
      exitOnCtrlC: false,
    },
  )
  const signals = takeSignals({
    restore: () => app.unmount(),
    stop: () => suspendPicker(ui),
    drawAgain: () => drawAgain(ui),
  })
  try {
    return await Promise.race([left, app.waitUntilExit().then(() => 0)])
  } finally {
    app.unmount()
    await app.waitUntilExit().catch(() => {})
    signals.end()
    process.stdin.pause()
    // Ink omits the last newline.
    if (isReadAloud()) process.stdout.write('\n')
  }
}
