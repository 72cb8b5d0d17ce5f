import { Box, Text } from 'ink'
import type { ExecSummary } from '../../shared/contract/exec.ts'
import type { Sandbox } from '../../shared/contract/sandboxes.ts'
import { marked } from '../files/tar-commands.ts'
import { describeStatus } from './describe.ts'
import { Line } from './line.tsx'
import { RemainingTime } from './remaining-time.tsx'
import { nameOf } from './state.ts'
import { oneLine } from './text.ts'
import { showAge } from './time.ts'

/** Column widths in terminal cells. A width of 0 omits the column. */
export interface Widths {
  name: number
  image: number
  age: number
  bar: number
  left: number
  command: number
}

/**
 * Returns the column widths. Narrow screens show only the columns needed to choose a session.
 * @param longestImage length of the longest image name, which wide screens show in full
 */
export function widthsFor(columns: number, longestImage: number): Widths {
  const marker = 2
  if (columns < 72) {
    const bar = columns < 50 ? 5 : 8
    return {
      name: Math.max(6, columns - marker - 5 - bar - 9),
      image: 0,
      age: 4,
      bar,
      left: bar + 8,
      command: 0,
    }
  }
  const name = Math.min(32, Math.floor(columns * 0.26))
  const room = Math.floor(columns * 0.16) + Math.max(0, Math.floor((columns - 80) / 2))
  const image = Math.min(Math.max('IMAGE'.length, longestImage), room)
  const [bar, left] = [8, 16]
  return { name, image, age: 4, bar, left, command: columns - marker - name - image - 4 - left - 4 }
}

interface Props {
  session: Sandbox
  /** Null if no command has been run, undefined until loaded. */
  lastCommand: ExecSummary | null | undefined
  isSelected: boolean
  /** Whether commands use this session by default. */
  isChosen: boolean
  now: number
  widths: Widths
}

export const SessionLine = ({ session, lastCommand, isSelected, isChosen, now, widths }: Props) => (
  <Box height={1} gap={1} aria-role="listitem" aria-state={{ selected: isSelected }}>
    <Box width={1 + widths.name} flexShrink={0}>
      <Text wrap="truncate-middle" bold={isSelected} inverse={isSelected}>
        {isSelected ? '›' : ' '}
        {oneLine(nameOf(session))}
        {isChosen && ' *'}
      </Text>
    </Box>
    {widths.image > 0 && (
      <Box width={widths.image} flexShrink={0}>
        <Text wrap="truncate-middle" dimColor>
          {oneLine(session.image)}
        </Text>
      </Box>
    )}
    <Box width={widths.age} flexShrink={0} justifyContent="flex-end">
      <Text>{showAge(now - Date.parse(session.created_at))}</Text>
    </Box>
    <Box width={widths.left} flexShrink={0}>
      <RemainingTime session={session} now={now} width={widths.bar} />
    </Box>
    {widths.command > 0 && (
      <Box width={widths.command} flexShrink={0}>
        <Line>{commandText(session, lastCommand)}</Line>
      </Box>
    )}
  </Box>
)

export function commandText(session: Sandbox, command: ExecSummary | null | undefined): string {
  if (session.state === 'active' && session.ready_at === null) return 'starting…'
  if (command === undefined) return '…'
  if (command === null) return '–'
  return `${describeStatus(command).sign} ${oneLine(marked(command.command))}`
}
