import { Box, Text } from 'ink'
import { bodyRows } from './layout.ts'
import { Line } from './line.tsx'
import { lastTop } from './moving.ts'
import type { FilePage, OutputPage, State } from './state.ts'
import { oneLine, showLines } from './text.ts'

/** Text to scroll through: what a command prints, or a file. */
export const TextPage = ({ state, page }: { state: State; page: OutputPage | FilePage }) => {
  const height = bodyRows(state)
  const text = page.at === 'output' ? page.output : page.content
  const rows = text.rows(state.size.columns)
  const last = lastTop(state, page, height)
  const top = page.top === 'end' ? last : Math.min(page.top, last)
  const title = page.at === 'output' ? `$ ${page.command}` : page.path
  const dropped = text.dropped === 0 ? '' : `, ${text.dropped} earlier lines not kept`
  return (
    <Box flexDirection="column" flexGrow={1} overflow="hidden">
      <Line bold>‹ {oneLine(showLines(title))}</Line>
      <Line dimColor>
        {page.status} · {rows.length === 0 ? 'nothing' : `row ${top + 1} of ${rows.length}`}
        {dropped}
      </Line>
      <Box flexDirection="column" flexGrow={1} overflow="hidden">
        {rows.slice(top, top + height).map((row, index) => (
          <Text key={index} wrap="truncate">
            {row === '' ? ' ' : row}
          </Text>
        ))}
      </Box>
    </Box>
  )
}
