import { Text, type TextProps } from 'ink'

/** Text truncated to one row. */
export const Line = (props: TextProps) => <Text wrap="truncate" {...props} />
