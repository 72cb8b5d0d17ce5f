import { Text } from 'ink'

interface Props {
  /** Of the whole, 0 to 1. */
  fraction: number
  width: number
  color: string
}

/** A bar. Its meaning must also stand beside it in words, because screen readers skip it. */
export const Bar = ({ fraction, width, color }: Props) => {
  const full = Math.round(Math.max(0, Math.min(1, fraction)) * width)
  return (
    <Text aria-hidden>
      <Text color={color}>{'█'.repeat(full)}</Text>
      <Text dimColor>{'░'.repeat(width - full)}</Text>
    </Text>
  )
}
