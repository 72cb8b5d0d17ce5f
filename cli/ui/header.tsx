import { Box, Text } from 'ink'
import { Bar } from './bar.tsx'
import { isWide } from './layout.ts'
import { Line } from './line.tsx'
import type { State } from './state.ts'
import { oneLine } from './text.ts'

export const Header = ({ state }: { state: State }) => {
  const { account, address, size, trouble } = state
  const wide = isWide(state)
  const width = Math.max(4, Math.min(12, Math.floor((size.columns - 34) / 4)))
  const who = account
    ? oneLine(account.email)
    : `${oneLine(address ?? '')}  ${trouble?.isUnavailable ? 'no answer' : 'loading…'}`
  return (
    <Box flexDirection="column" flexShrink={0}>
      <Box flexDirection={wide ? 'row' : 'column'} justifyContent="space-between" gap={wide ? 2 : 0}>
        <Text wrap="truncate-middle" bold>
          {who}
        </Text>
        <Box gap={2} height={1} flexShrink={0}>
          {account && (
            <Meter
              label={`${account.concurrent.active}/${account.concurrent.limit}${wide ? ' sessions' : ''}`}
              fraction={account.concurrent.active / Math.max(1, account.concurrent.limit)}
              width={width}
            />
          )}
          {account && (
            <Meter
              label={`${account.usage.sandbox_hours.toFixed(1)}/${account.usage.limit} h${wide ? ' of the month' : ''}`}
              fraction={account.usage.sandbox_hours / Math.max(0.001, account.usage.limit)}
              width={width}
            />
          )}
        </Box>
      </Box>
      <Line dimColor aria-hidden>
        {'─'.repeat(size.columns)}
      </Line>
    </Box>
  )
}

/** @param label text such as `2/5 sessions` */
const Meter = ({ label, fraction, width }: { label: string; fraction: number; width: number }) => (
  <Box gap={1} flexShrink={0}>
    <Line bold={fraction >= 1}>{label}</Line>
    <Bar
      fraction={fraction}
      width={width}
      color={fraction >= 1 ? 'red' : fraction >= 0.8 ? 'yellow' : 'cyan'}
    />
  </Box>
)
