import { Text } from 'ink'

interface Props {
  fraction: number
  width: number
  color: string
}

/** Draws a bar. It is hidden from screen readers, because the caller shows the value as text. */
export const Bar = ({ fraction, width, color }: Props) => {
  const full = Math.round(Math.max(0, Math.min(1, fraction)) * width)
  return (
    <Text aria-hidden>
      <Text color={color}>{'█'.repeat(full)}</Text>
      <Text dimColor>{'░'.repeat(width - full)}</Text>
    </Text>
  )
}
