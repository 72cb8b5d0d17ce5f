import type { FileStat } from './files.ts'

/** The path begins with the requested path, so other routes accept it. */
type Path = Pick<FileStat, 'path' | 'path_base64'>

export type WatchEvent = { id: string } & (
  | { event: 'start'; data: Path & { entries: number } }
  | { event: 'created' | 'changed'; data: FileStat }
  | { event: 'removed'; data: Path }
  /** The error's code and detail. After the code `unavailable`, the client can watch the path again. */
  | { event: 'end'; data: { code: string; detail: string } }
)

/** The end of a watch that the client can start again. */
export const watchInterrupted = {
  code: 'unavailable',
  detail: 'The watch was interrupted. Watch the path again, and list it to find the changes that you missed.',
}
