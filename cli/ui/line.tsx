import { Text, type TextProps } from 'ink'

export const Line = (props: TextProps) => <Text wrap="truncate" {...props} />
