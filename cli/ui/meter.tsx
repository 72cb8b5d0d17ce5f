import { Box } from 'ink'
import { Bar } from './bar.tsx'
import { Line } from './line.tsx'

interface Props {
  /** Before the bar, such as `2/5 sessions`. */
  label: string
  fraction: number
  width: number
}

/** How much of a limit is used. */
export const Meter = ({ label, fraction, width }: Props) => (
  <Box gap={1} flexShrink={0}>
    <Line bold={fraction >= 1}>{label}</Line>
    <Bar
      fraction={fraction}
      width={width}
      color={fraction >= 1 ? 'red' : fraction >= 0.8 ? 'yellow' : 'cyan'}
    />
  </Box>
)
