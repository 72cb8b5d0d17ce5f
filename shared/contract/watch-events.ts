import type { FileStat } from './files.ts'

/** Path of a watched entry. It begins with the requested path, so clients can pass it to other routes. */
type Path = Pick<FileStat, 'path' | 'path_base64'>

export type WatchEvent = { id: string } & (
  | { event: 'start'; data: Path & { entries: number } }
  | { event: 'created' | 'changed'; data: FileStat }
  | { event: 'removed'; data: Path }
  /**
   * `data` is the code and detail of the error that ended the watch. After the code `unavailable`, the client
   * can watch the path again.
   */
  | { event: 'end'; data: { code: string; detail: string } }
)

/** Data of the `end` event of an interrupted watch, which the client can start again. */
export const watchInterrupted = {
  code: 'unavailable',
  detail: 'The watch was interrupted. Watch the path again, and list it to find the changes that you missed.',
}
