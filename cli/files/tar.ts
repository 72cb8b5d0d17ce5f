/** Whole folders between this machine and a session, by the sandbox's own tar. */
import { Readable } from 'node:stream'
import type { ExecEnd } from '../../shared/contract/exec.ts'
import { addStory, CliError } from '../core/errors.ts'
import { Input } from '../exec/input.ts'
import { createRemote } from '../exec/remote.ts'
import { runStreaming } from '../exec/stream.ts'
import type { RemotePath } from './download.ts'
import { packCommand, unpackCommand } from './tar-commands.ts'

/** What relative paths begin from. */
export const home = '/workspace'
/** Of what tar says of a failure. */
const keptBytes = 4096

/** Unpacks an archive at the root of the sandbox. */
export function unpackThere(place: RemotePath, archive: AsyncIterable<Buffer>): Promise<void> {
  const input = new Input(Readable.from(archive))
  return runTar(place, unpackCommand, { input })
}

/** @param write gets an archive of what is in the folder; resolves when it can take more */
export const packThere = (place: RemotePath, write: (bytes: Buffer) => Promise<void>): Promise<void> =>
  runTar(place, packCommand(place.path), { write })

interface Pipes {
  input?: Input
  write?: (bytes: Buffer) => Promise<void>
}

async function runTar({ api, id, output }: RemotePath, command: string[], { input, write }: Pipes) {
  let said = ''
  let taken = 0
  const ended = await runStreaming({
    remote: createRemote(api, id),
    // Bytes of files, as `files get` gives them: what looks like a secret must not be blanked out.
    request: { command, reveal: true },
    input,
    write: async (stream, bytes) => {
      if (stream === 'stderr') said = `${said}${bytes}`.slice(0, keptBytes)
      else {
        taken += bytes.length
        await write?.(bytes)
      }
    },
    note: output.note,
  }).catch(explainRefusal)
  mustHaveWorked(ended, said.trim())
  if (taken < ended.stdout_bytes) {
    throw new CliError('network', 'The connection broke for too long, and a part of the archive is lost.')
  }
}

function explainRefusal(error: unknown): never {
  if (!(error instanceof CliError) || error.code !== 'command_not_allowed') throw error
  throw addStory(
    error,
    'A folder is copied by tar in the sandbox.',
    'Files can be copied one by one: that takes no command.',
  )
}

/** @param said what tar printed on stderr */
function mustHaveWorked({ status, exit_code, signal, reason }: ExecEnd, said: string): void {
  if (status === 'exited' && exit_code === 0) return
  if (exit_code === 126 || exit_code === 127) {
    throw new CliError('failed', 'The sandbox has no tar, which copies folders.', {
      hint: 'Copy files one by one, or create the session with an image that has tar.',
    })
  }
  if (signal === 'INT') throw new CliError('interrupted', 'Interrupted. What was copied so far stays.')
  const why = said || reason || `it ended with ${exit_code ?? signal ?? status}`
  throw new CliError('failed', `tar failed in the sandbox: ${why}`)
}
