import { stripVTControlCharacters } from 'node:util'
import { Box, Text } from 'ink'
import { wantsColor } from '../core/drawing.ts'
import { bodyRows } from './layout.ts'
import { Line } from './line.tsx'
import { nameInFront, type OutputPage as Page, type State } from './state.ts'
import { oneLine, showLines } from './text.ts'

export const OutputPage = ({ state, page }: { state: State; page: Page }) => {
  const { output, top, status, command } = page
  const { first, rows } = output.show(top, state.size.columns, bodyRows(state))
  const place = output.total ? `line ${first} of ${output.total}` : 'no output'
  const show = wantsColor(process.stdout) ? (row: string) => row : stripVTControlCharacters
  return (
    <Box flexDirection="column" flexGrow={1} overflow="hidden">
      <Box height={1}>
        <Box flexShrink={0} maxWidth={Math.max(12, Math.floor(state.size.columns / 3))}>
          <Text wrap="truncate-middle" bold>
            ‹ {oneLine(nameInFront(state))}
          </Text>
        </Box>
        <Line bold>{oneLine(showLines(` $ ${command}`))}</Line>
      </Box>
      <Line dimColor>
        {status} · {place}
      </Line>
      <Box flexDirection="column" flexGrow={1} overflow="hidden">
        {rows.map((row, index) => (
          <Text key={index} wrap="truncate">
            {show(row) || ' '}
          </Text>
        ))}
      </Box>
    </Box>
  )
}
