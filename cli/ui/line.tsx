import { Text, type TextProps } from 'ink'

export const Line = (props: TextProps) => <Text wrap="truncate" {...props} />

/** Draws a bar. It is hidden from screen readers, because callers also show the value as text. */
export const Bar = ({ fraction, width, color }: { fraction: number; width: number; color: string }) => {
  const full = Math.round(Math.max(0, Math.min(1, fraction)) * width)
  return (
    <Text aria-hidden>
      <Text color={color}>{'█'.repeat(full)}</Text>
      <Text dimColor>{'░'.repeat(width - full)}</Text>
    </Text>
  )
}
