import { Text, type TextProps } from 'ink'

/** Text in one row: what does not fit is left out. */
export const Line = (props: TextProps) => <Text wrap="truncate" {...props} />
