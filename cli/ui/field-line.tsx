import { Box, Text } from 'ink'
import type { Field } from './form.ts'
import { oneLine, showLines } from './text.ts'

export const FieldLine = (props: { field: Field; isTyped: boolean; labelWidth: number }) => {
  const { field, isTyped, labelWidth } = props
  const { label, line, isHidden, placeholder } = field
  const points = [...line.text].map((point) => (isHidden ? '•' : showLines(point)))
  const [before, after] = [points.slice(0, line.at).join(''), points.slice(line.at).join('')]
  return (
    <Box height={1} gap={1} aria-role="textbox">
      <Box width={labelWidth + 2} flexShrink={0}>
        <Text wrap="truncate" bold={isTyped}>
          {isTyped ? '›' : ' '} {label}
        </Text>
      </Box>
      <Text wrap="truncate-start">
        {oneLine(before)}
        {isTyped ? '▏' : ''}
        {oneLine(after)}
        {points.length === 0 && <Text dimColor>{placeholder}</Text>}
      </Text>
    </Box>
  )
}
