import { Box, Text } from 'ink'
import { keysOf, type Where, whereIs } from './keys.ts'
import { Line } from './line.tsx'
import type { State } from './state.ts'

export const HelpView = ({ state, top }: { state: State; top: number }) => {
  const where = whereIs(state)
  const lines = keysOf(where)
  const rows = state.size.rows - 2
  return (
    <Box flexDirection="column" flexGrow={1} overflow="hidden">
      <Line bold>{titles[where]}</Line>
      <Box flexDirection="column" flexGrow={1} overflow="hidden">
        {lines.slice(top, top + rows).map(({ shown, label, applies }) => (
          <Box key={label} height={1}>
            <Box width={10} flexShrink={0}>
              <Text bold>{shown}</Text>
            </Box>
            <Line>
              {label}
              {applies && !applies(state) ? ' (not now)' : ''}
            </Line>
          </Box>
        ))}
      </Box>
      <Line dimColor>{lines.length > rows ? '↑ ↓ more · ' : ''}any other key: back</Line>
    </Box>
  )
}

const titles: Record<Where, string> = {
  'first-run': 'Keys',
  list: 'Keys for the list',
  commands: "Keys for the session's commands",
  files: "Keys for the session's files",
  output: 'Keys for the output',
}
