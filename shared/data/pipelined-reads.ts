import { leavesUsable, type PoolClient, type Send } from './pool.ts'

/** Maximum number of unfinished reads per connection. Further reads use another connection. */
const maxReads = 32

interface Connection {
  readonly client: Promise<PoolClient>
  reads: number
  isUsable: boolean
}

/**
 * Sends reads that run at the same time over one connection, without waiting for earlier results. This saves
 * most of the system calls of both sides. PostgreSQL runs the reads of a connection one after another, so none
 * of them may wait for a lock. The connection returns to the pool once no read uses it.
 */
export class PipelinedReads {
  private latest: Connection | undefined
  private readonly connect: () => Promise<PoolClient>

  constructor(connect: () => Promise<PoolClient>) {
    this.connect = connect
  }

  send: Send = async (query) => {
    const connection = this.join()
    try {
      const client = await connection.client
      return await client.query(query)
    } catch (error) {
      connection.isUsable &&= leavesUsable(error)
      throw error
    } finally {
      await this.leave(connection)
    }
  }

  private join(): Connection {
    const { latest } = this
    const isFree = latest?.isUsable && latest.reads > 0 && latest.reads < maxReads
    const connection = isFree ? latest : { client: this.connect(), reads: 0, isUsable: true }
    connection.reads++
    this.latest = connection
    return connection
  }

  private async leave(connection: Connection): Promise<void> {
    connection.reads--
    if (connection.reads > 0) return
    const client = await connection.client.catch(() => undefined)
    client?.release(!connection.isUsable)
  }
}
