import { Box, Text } from 'ink'
import { commandLines } from './keys.ts'
import { Line } from './line.tsx'
import { nameInFront, type State } from './state.ts'
import { oneLine } from './text.ts'

export const CopyView = ({ state, at }: { state: State; at: number }) => (
  <Box flexDirection="column" flexGrow={1} overflow="hidden">
    <Line bold>Copy the equivalent command line{forName(nameInFront(state))}</Line>
    <Box flexDirection="column" flexGrow={1} overflow="hidden" aria-role="list">
      {commandLines(state).map(({ key: { shown, label }, text }, index) => (
        <Box key={label} height={1} aria-role="listitem" aria-state={{ selected: index === at }}>
          <Box width={10} flexShrink={0}>
            <Text bold>
              {index === at ? '›' : ' '} {shown}
            </Text>
          </Box>
          <Line inverse={index === at}>{oneLine(text)}</Line>
        </Box>
      ))}
    </Box>
    <Line dimColor>Enter, or its key, copies · Esc back</Line>
  </Box>
)

const forName = (name: string) => (name === '' ? '' : ` in ${oneLine(name)}`)
