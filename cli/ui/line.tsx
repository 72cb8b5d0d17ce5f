import { Text, type TextProps } from 'ink'

/** Shows text truncated to one row. */
export const Line = (props: TextProps) => <Text wrap="truncate" {...props} />
