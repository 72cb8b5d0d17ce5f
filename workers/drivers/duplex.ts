import { Duplex } from 'node:stream'
import type { Process } from './driver.ts'

/**
 * Combines the stdin and stdout of a process into one stream.
 * @param failure creates the stream's error from the reason why the connection broke
 */
export function duplexOf(process: Process, failure: (why: string) => Error): Duplex {
  const { stdin, stdout, ended } = process
  const duplex = new Duplex({
    read: () => void stdout.resume(),
    write(chunk, _encoding, done) {
      // If the listener has closed, writes fail, but the listener's remaining output can still be read.
      stdin.write(chunk, () => done())
    },
    final(done) {
      // `end` on a destroyed stream never calls back.
      if (stdin.destroyed) done()
      else stdin.end(() => done())
    },
    destroy(error, done) {
      process.close()
      done(error)
    },
  })
  // The stream may fail before its user listens for errors.
  duplex.on('error', () => {})
  stdout.on('data', (chunk) => {
    if (!duplex.push(chunk)) stdout.pause()
  })
  stdout.on('end', async () => {
    const end = await ended
    if (end.kind === 'exited' && end.code === 0) duplex.push(null)
    else duplex.destroy(failure(end.kind === 'lost' ? end.why : 'the listener reset the connection'))
  })
  return duplex
}
