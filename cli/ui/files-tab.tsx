import { Box, Text } from 'ink'
import { selectedRow } from './files.ts'
import { type Row, rowsOf } from './folder.ts'
import { bodyRows } from './layout.ts'
import { Line } from './line.tsx'
import type { SessionPage, State } from './state.ts'
import { oneLine } from './text.ts'
import { useWindow } from './use-window.ts'

export const FilesTab = ({ state, page }: { state: State; page: SessionPage }) => {
  const { path, entries, isCut } = page.folder
  const all = rowsOf(page.folder)
  const selected = selectedRow(page)
  const { shown } = useWindow(all, Math.max(1, bodyRows(state) - 1), ({ key }) => key === selected?.key)
  return (
    <Box flexDirection="column" flexGrow={1} overflow="hidden">
      <Text wrap="truncate-start" bold>
        {oneLine(path)}
        {isCut ? ' (truncated)' : ''}
      </Text>
      {all.length === 0 && <Text>{entries ? '  (empty)' : '  …'}</Text>}
      {shown.map((row) => (
        <FileLine key={row.key} row={row} isSelected={row.key === selected?.key} />
      ))}
    </Box>
  )
}

const FileLine = ({ row: { entry }, isSelected }: { row: Row; isSelected: boolean }) => (
  <Box
    height={1}
    justifyContent="space-between"
    gap={1}
    aria-role="listitem"
    aria-state={{ selected: isSelected }}
  >
    <Line bold={isSelected} inverse={isSelected}>
      {isSelected ? '›' : ' '} {oneLine(entry.name)}
      {entry.type === 'directory' ? '/' : ''}
      {entry.target === undefined ? '' : ` → ${oneLine(entry.target)}`}
    </Line>
    <Box flexShrink={0}>
      <Text dimColor>{entry.type === 'file' ? showSize(entry.size) : ''}</Text>
    </Box>
  </Box>
)

function showSize(bytes: number): string {
  if (bytes < 1024) return `${bytes} B`
  const units = ['KiB', 'MiB', 'GiB']
  const power = Math.min(units.length, Math.floor(Math.log2(bytes) / 10))
  return `${(bytes / 1024 ** power).toFixed(1)} ${units[power - 1]}`
}
