/** A connection to a port, carried by the streams that carry a process. */
import { Duplex } from 'node:stream'
import type { Process } from './driver.ts'

/** @param failure what the stream fails with when the connection did not end by itself, from the reason for that */
export function duplexOf(process: Process, failure: (why: string) => Error): Duplex {
  const { stdin, stdout, ended } = process
  const duplex = new Duplex({
    read: () => void stdout.resume(),
    write(chunk, _encoding, done) {
      // A listener that has closed takes no more. The end of the stream tells that, after what is yet to be read.
      stdin.write(chunk, () => done())
    },
    final(done) {
      // The end of a stream that is destroyed is never told.
      if (stdin.destroyed) done()
      else stdin.end(() => done())
    },
    destroy(error, done) {
      process.close()
      done(error)
    },
  })
  // It may fail before its reader listens.
  duplex.on('error', () => {})
  stdout.on('data', (chunk) => {
    if (!duplex.push(chunk)) stdout.pause()
  })
  stdout.on('end', async () => {
    const end = await ended
    if (end.kind === 'exited' && end.code === 0) duplex.push(null)
    else duplex.destroy(failure(end.kind === 'lost' ? end.why : 'the listener broke it off'))
  })
  return duplex
}
