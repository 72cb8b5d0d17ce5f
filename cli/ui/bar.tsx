import { Text } from 'ink'

interface Props {
  /** Of the whole, 0 to 1. */
  fraction: number
  width: number
  color: string
}

/** A bar. What it says must also stand beside it in words: readers of screens skip it. */
export const Bar = ({ fraction, width, color }: Props) => {
  const full = Math.round(Math.max(0, Math.min(1, fraction)) * width)
  return (
    <Text aria-hidden>
      <Text color={color}>{'█'.repeat(full)}</Text>
      <Text dimColor>{'░'.repeat(width - full)}</Text>
    </Text>
  )
}
