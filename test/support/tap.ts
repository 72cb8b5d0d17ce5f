/**
 * What a process says to PostgreSQL and Redis: sockets between them that pass every byte on, and
 * write down each statement and each command. One entry is one round trip.
 */
import { mkdirSync } from 'node:fs'
import { join } from 'node:path'
import { openRelay } from './relay.ts'

export interface Tap extends AsyncDisposable {
  /** Where the process is to connect in place of the server. */
  url: string
  /** Everything so far, oldest first. */
  said: string[]
}

/** Reads what one connection says, in pieces as they come. */
type Listen = (bytes: Buffer) => string[]

/** @param url of a server behind a socket: `postgresql:///database?host=/folder` */
export async function tapPostgres(url: string, folder: string): Promise<Tap> {
  const socketOf = (directory: string) => join(directory, '.s.PGSQL.5432')
  const directory = /host=([^&]+)/.exec(url)![1]!
  mkdirSync(folder)
  return tap(socketOf(directory), socketOf(folder), url.replace(directory, folder), hearStatements)
}

/** @param url of a server behind a socket: `unix:///path` */
export async function tapRedis(url: string, folder: string): Promise<Tap> {
  mkdirSync(folder)
  const socket = join(folder, 'redis.sock')
  return tap(new URL(url).pathname, socket, `unix://${socket}`, hearCommands)
}

async function tap(from: string, at: string, url: string, open: () => Listen): Promise<Tap> {
  const said: string[] = []
  const relay = await openRelay(
    { path: from },
    { path: at },
    {
      opened(near) {
        const listen = open()
        near.on('data', (bytes) => said.push(...listen(bytes)))
      },
    },
  )
  return { url, said, [Symbol.asyncDispose]: relay.close }
}

/** By its name, a statement that has one. PostgreSQL's protocol: a message is a letter, its length, its content; the first has no letter. */
function hearStatements(): Listen {
  let rest = Buffer.alloc(0)
  let isFirst = true
  let unnamed = ''
  let bound = ''
  const hear = (kind: string, content: Buffer): string[] => {
    const [first = '', second = ''] = content.toString('latin1').split('\0', 2)
    if (kind === 'Q') return [oneLine(first)]
    if (kind === 'P' && first === '') unnamed = oneLine(second)
    if (kind === 'B') bound = second || unnamed
    return kind === 'S' ? [bound] : []
  }
  return (bytes) => {
    rest = Buffer.concat([rest, bytes])
    const heard: string[] = []
    for (;;) {
      const head = isFirst ? 0 : 1
      if (rest.length < head + 4) return heard
      const end = head + rest.readUInt32BE(head)
      if (rest.length < end) return heard
      if (!isFirst) heard.push(...hear(String.fromCharCode(rest[0]!), rest.subarray(5, end)))
      isFirst = false
      rest = rest.subarray(end)
    }
  }
}

/** Redis's protocol: `*2\r\n$3\r\nGET\r\n$1\r\na\r\n`. A command is told with its first key. */
function hearCommands(): Listen {
  let rest = Buffer.alloc(0)
  const readLine = (at: number): { number: number; next: number } | undefined => {
    const end = rest.indexOf('\r\n', at)
    return end < 0 ? undefined : { number: Number(rest.toString('latin1', at + 1, end)), next: end + 2 }
  }
  const readCommand = (): string[] | undefined => {
    const count = readLine(0)
    if (!count) return
    const words: string[] = []
    let at = count.next
    while (words.length < count.number) {
      const length = readLine(at)
      if (!length || rest.length < length.next + length.number + 2) return
      words.push(rest.toString('latin1', length.next, length.next + length.number))
      at = length.next + length.number + 2
    }
    rest = rest.subarray(at)
    return words
  }
  return (bytes) => {
    rest = Buffer.concat([rest, bytes])
    const heard: string[] = []
    for (let words = readCommand(); words; words = readCommand()) {
      const name = words[0]!.toLowerCase()
      heard.push(`${name} ${name.startsWith('eval') ? words[3] : words[1]}`)
    }
    return heard
  }
}

const oneLine = (sql: string) => sql.replace(/\s+/g, ' ').trim()
