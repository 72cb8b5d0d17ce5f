import { stripVTControlCharacters } from 'node:util'
import { Box, Text } from 'ink'
import { wantsColor } from '../core/drawing.ts'
import { rowsFrom } from './file-place.ts'
import { placeOf, textOf } from './file-scroll.ts'
import { bodyRows } from './layout.ts'
import { Line } from './line.tsx'
import { type FilePage, nameInFront, type OutputPage, type State } from './state.ts'
import { oneLine, showLines } from './text.ts'

interface Shown {
  rows: (string | undefined)[]
  where: string
}

/** Text to scroll through: what a command prints, or a file. */
export const TextPage = ({ state, page }: { state: State; page: OutputPage | FilePage }) => {
  const { rows, where } = shownOf(state, page)
  const title = page.at === 'output' ? ` $ ${page.command}` : `:${page.path}`
  const show = wantsColor(process.stdout) ? (row: string) => row : stripVTControlCharacters
  return (
    <Box flexDirection="column" flexGrow={1} overflow="hidden">
      <Box height={1}>
        <Box flexShrink={0} maxWidth={Math.max(12, Math.floor(state.size.columns / 3))}>
          <Text wrap="truncate-middle" bold>
            ‹ {oneLine(nameInFront(state))}
          </Text>
        </Box>
        <Line bold>{oneLine(showLines(title))}</Line>
      </Box>
      <Line dimColor>
        {page.status} · {where}
      </Line>
      <Box flexDirection="column" flexGrow={1} overflow="hidden">
        {rows.map((row, index) => (
          <Text key={index} wrap="truncate">
            {row === undefined ? '…' : show(row) || ' '}
          </Text>
        ))}
      </Box>
    </Box>
  )
}

function shownOf(state: State, page: OutputPage | FilePage): Shown {
  const [width, height] = [state.size.columns, bodyRows(state)]
  const text = textOf(page)
  const place = placeOf(page, width, height)
  const where = text.total ? `line ${place.line} of ${text.total}` : 'nothing'
  return { rows: rowsFrom(text, width, height, place), where }
}
