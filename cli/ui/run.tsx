/** Runs the picker, and restores the terminal afterwards. */
import { render, useApp, useInput, useIsScreenReaderEnabled, usePaste, useWindowSize } from 'ink'
import { useEffect, useLayoutEffect, useState, useSyncExternalStore } from 'react'
import { isReadAloud } from '../core/drawing.ts'
import type { Settings } from '../core/settings.ts'
import { serviceNow } from '../core/times.ts'
import { createUi } from './create-ui.ts'
import { paste, take } from './press.ts'
import { Screen } from './screen.tsx'
import { takeSignals } from './signals.ts'
import { TerminalInput } from './terminal-input.ts'
import type { Ui } from './ui.ts'

/**
 * Runs the picker.
 * @returns the exit code
 * @throws {Error} if the picker crashes, after restoring the terminal
 */
export async function runPicker(settings: Settings): Promise<number> {
  const { promise: left, resolve: leave } = Promise.withResolvers<number>()
  const ui = await createUi(settings, {
    leaveTo: (use) => leaveTo(use),
    write: (sequence) => void process.stdout.write(sequence),
    quit: leave,
  })
  const leaveTo = takeSignals(ui)
  const stdin = new TerminalInput(process.stdin, () => ui.quit())
  const app = render(<App ui={ui} />, {
    stdin: stdin as unknown as NodeJS.ReadStream,
    // By default, Ink is not interactive if CI is set.
    interactive: true,
    // Screen readers need plain text.
    alternateScreen: !isReadAloud(),
    incrementalRendering: true,
    exitOnCtrlC: false,
  })
  try {
    return await Promise.race([left, app.waitUntilExit().then(() => 0)])
  } finally {
    app.unmount()
    await app.waitUntilExit().catch(() => {})
    process.stdin.pause()
    // Ink omits the last newline.
    if (isReadAloud()) process.stdout.write('\n')
  }
}

const App = ({ ui }: { ui: Ui }) => {
  const { store } = ui
  const { columns, rows } = useWindowSize()
  // Uses this frame's size, because a frame taller than the screen would scroll.
  const state = { ...useSyncExternalStore(store.subscribe, store.get), size: { columns, rows } }
  const now = useNow(useIsScreenReaderEnabled())
  const { suspendTerminal } = useApp()

  useLayoutEffect(() => store.set({ size: { columns, rows } }), [store, columns, rows])
  useLayoutEffect(() => ui.onTerminal(suspendTerminal), [ui, suspendTerminal])
  useInput((input, key) => take(ui, input, key))
  usePaste((text) => paste(ui, text))

  return <Screen state={state} now={now} onVisible={ui.onVisible} />
}

/** Returns the time, updated every second, or every 30 s for screen readers, which read each change aloud. */
function useNow(isReadAloud: boolean): number {
  const [now, setNow] = useState(serviceNow)
  useEffect(() => {
    const timer = setInterval(() => setNow(serviceNow()), isReadAloud ? 30_000 : 1_000)
    return () => clearInterval(timer)
  }, [isReadAloud])
  return isReadAloud ? now : serviceNow()
}
