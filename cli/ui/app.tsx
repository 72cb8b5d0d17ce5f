import { useApp, useInput, useIsScreenReaderEnabled, usePaste, useWindowSize } from 'ink'
import { useLayoutEffect } from 'react'
import { paste, take } from './press.ts'
import { Screen } from './screen.tsx'
import { useUi, useUiState } from './ui.ts'
import { useNow } from './use-now.ts'

export const App = () => {
  const ui = useUi()
  const { columns, rows } = useWindowSize()
  // Uses this frame's size, because a frame taller than the screen would scroll.
  const state = { ...useUiState(), size: { columns, rows } }
  const now = useNow(useIsScreenReaderEnabled())
  const { suspendTerminal } = useApp()

  useLayoutEffect(() => ui.store.set({ size: { columns, rows } }), [ui, columns, rows])
  useLayoutEffect(() => ui.onTerminal(suspendTerminal), [ui, suspendTerminal])
  useInput((input, key) => take(ui, input, key))
  usePaste((text) => paste(ui, text))

  return <Screen state={state} now={now} onVisible={ui.onVisible} />
}
