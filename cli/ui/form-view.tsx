import { Box, Text } from 'ink'
import { FieldLine } from './field-line.tsx'
import { type Form, hintOf } from './form.ts'
import { Line } from './line.tsx'
import { oneLine, wrapWords } from './text.ts'

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
          <Text key={index} wrap="truncate" color="red">
            {line}
          </Text>
        ))}
      <Line dimColor>
        {form.fields.length > 1 ? 'Tab next · ' : ''}
        {hintOf(form)}
      </Line>
    </Box>
  )
}
