import { stripVTControlCharacters } from 'node:util'
import { Box, Text } from 'ink'
import { wantsColor } from '../core/settings.ts'
import { rowsFrom, within } from './file-place.ts'
import { bodyRows } from './layout.ts'
import { Line } from './line.tsx'
import { lastTop } from './moving.ts'
import { type FilePage, nameInFront, type OutputPage, type State } from './state.ts'
import { oneLine, showLines } from './text.ts'

interface Shown {
  rows: (string | undefined)[]
  /** Where in the text they are. */
  where: string
}

/** Text to scroll through: what a command prints, or a file. */
export const TextPage = ({ state, page }: { state: State; page: OutputPage | FilePage }) => {
  const { rows, where } = page.at === 'output' ? shownOfOutput(state, page) : shownOfFile(state, page)
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

function shownOfOutput(state: State, page: OutputPage): Shown {
  const height = bodyRows(state)
  const { output } = page
  const rows = output.rows(state.size.columns)
  const last = lastTop(state, page, height)
  const top = page.top === 'end' ? last : Math.min(page.top, last)
  const dropped = output.dropped === 0 ? '' : `, ${output.dropped} earlier lines not kept`
  const where = rows.length === 0 ? 'nothing' : `row ${top + 1} of ${rows.length}`
  return { rows: rows.slice(top, top + height), where: `${where}${dropped}` }
}

function shownOfFile(state: State, { content, top }: FilePage): Shown {
  const [width, height] = [state.size.columns, bodyRows(state)]
  const place = within(content, width, height, top)
  const where = content.total ? `line ${place.line} of ${content.total}` : 'nothing'
  return { rows: rowsFrom(content, width, height, place), where }
}
