import { Box, Text } from 'ink'
import { type Field, type Form, hintOf } from './form.ts'
import { Line } from './line.tsx'
import { oneLine, showLines, wrapWords } from './text.ts'

export const FormView = ({ form, columns }: { form: Form; columns: number }) => {
  const labelWidth = Math.max(...form.fields.map(({ label }) => label.length))
  return (
    <Box flexDirection="column" flexGrow={1} overflow="hidden">
      <Line bold>{form.title}</Line>
      <Text> </Text>
      {form.fields.map((field, index) => (
        <FieldLine key={field.name} field={field} isTyped={index === form.at} labelWidth={labelWidth} />
      ))}
      <Text> </Text>
      {form.busy !== undefined && <Line>… {form.busy}</Line>}
      {form.error !== undefined &&
        wrapWords(`! ${oneLine(form.error)}`, columns).map((line, index) => (
          <Line key={index} color="red">
            {line}
          </Line>
        ))}
      <Line dimColor>
        {form.fields.length > 1 ? 'Tab next · ' : ''}
        {hintOf(form)}
      </Line>
    </Box>
  )
}

export const FieldLine = (props: { field: Field; isTyped: boolean; labelWidth: number }) => {
  const { field, isTyped, labelWidth } = props
  const { label, line, isHidden, placeholder } = field
  const points = [...line.text].map((point) => (isHidden ? '•' : showLines(point)))
  const [before, after] = [points.slice(0, line.at).join(''), points.slice(line.at).join('')]
  return (
    <Box height={1} gap={1} aria-role="textbox">
      <Box width={labelWidth + 2} flexShrink={0}>
        <Line bold={isTyped}>
          {isTyped ? '›' : ' '} {label}
        </Line>
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
