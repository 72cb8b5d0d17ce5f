import { render } from 'ink-testing-library'
import { Screen } from '../../../cli/ui/screen.tsx'
import type { State } from '../../../cli/ui/state.ts'
import { now as sampleNow } from './sample.ts'

export function draw(state: State, now = sampleNow): string {
  // Without these variables, Ink starts processes to find the terminal size.
  Object.assign(process.env, { COLUMNS: '100', LINES: '24' })
  const { lastFrame, unmount } = render(<Screen state={state} now={now} />)
  const frame = lastFrame() ?? ''
  unmount()
  for (const name of ['COLUMNS', 'LINES']) delete process.env[name]
  return frame
}

export const drawRows = (state: State, now?: number): string[] =>
  draw(state, now)
    .split('\n')
    .map((row) => row.trimEnd())

export const sized = (state: State, columns: number, rows: number): State => ({
  ...state,
  size: { columns, rows },
})
