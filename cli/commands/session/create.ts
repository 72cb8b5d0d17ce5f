/** `sandlot session create`: a new session; its id on stdout. */
import { randomUUID } from 'node:crypto'
import { limits } from '../../../shared/contract/limits.ts'
import { collect, type Define, handleWith } from '../../command.ts'
import { readDuration, readPairs } from '../../parse.ts'

interface Options {
  image?: string
  name?: string
  ttl?: string
  metadata?: string[]
  env?: string[]
  async?: boolean
}

export const define: Define = (command) => {
  command
    .option('--image <image>', "the image; the service's default without")
    .option('--name <name>', 'a name to know it by')
    .option('--ttl <duration>', 'how long it may live, such as 10m')
    .option('--metadata <name=value>', 'a label; may be given several times', collect)
    .option('--env <name=value>', 'a variable for its commands; may be given several times', collect)
    .option('--async', 'do not wait until it is ready')
  handleWith<Options>(command, async ({ options, api, output }) => {
    const { image, name, ttl } = options
    const metadata = readPairs(options.metadata, '--metadata')
    const env = readPairs(options.env, '--env')
    const sandbox = await api.call('createSandbox', {
      body: {
        ...(image !== undefined && { image }),
        ...(name !== undefined && { name }),
        ...(metadata !== undefined && { metadata }),
        ...(env !== undefined && { env }),
        ...(ttl !== undefined && { ttl_seconds: Math.max(1, Math.round(readDuration(ttl, '--ttl') / 1000)) }),
      },
      headers: {
        // A create whose answer is lost may be sent again, and makes one sandbox.
        'idempotency-key': randomUUID(),
        ...(options.async && { prefer: 'respond-async' }),
      },
      timeoutMs: limits.createWaitMs + 30_000,
    })
    output.result(sandbox, `${sandbox.id}\n`)
    if (sandbox.ready_at === null) output.aside('It is still starting; its first command waits for it.')
    output.aside(`It lives until ${sandbox.expires_at}. Next: sandlot exec -- uname -a`)
  })
}
