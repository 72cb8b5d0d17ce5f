/** What a path of a session is. */
import { CliError } from '../core/errors.ts'
import type { RemotePath } from './download.ts'

export type Kind = 'file' | 'folder' | 'missing'

/** Asks for one byte of it. @throws {CliError} for all else that keeps it from being read */
export async function kindOf({ api, id, path }: RemotePath): Promise<Kind> {
  try {
    const headers = { range: 'bytes=0-0' }
    const { response } = await api.open('readRawFile', { params: { id }, query: { path }, headers })
    response.destroy()
    return 'file'
  } catch (error) {
    const kind = error instanceof CliError ? kinds[error.code] : undefined
    if (kind === undefined) throw error
    return kind
  }
}

const kinds: Record<string, Kind> = {
  is_directory: 'folder',
  file_not_found: 'missing',
  // It has no first byte.
  range_not_satisfiable: 'file',
  // A pipe, a device or a socket. A path that is invalid is refused again by the write.
  invalid_request: 'file',
}
