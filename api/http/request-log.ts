import type { Logger } from '../../shared/platform/log.ts'

/**
 * Adds the IDs of a request to its log lines. A child logger would do the same, but creating one for each ID
 * takes longer than writing the only line of most requests.
 */
export class RequestLog {
  private readonly log: Logger
  private readonly ids: Record<string, string>

  constructor(log: Logger, ids: Record<string, string>) {
    this.log = log
    this.ids = ids
  }

  addIds(ids: Record<string, string>): void {
    Object.assign(this.ids, ids)
  }

  info(fields: object, message: string): void {
    this.log.info({ ...this.ids, ...fields }, message)
  }

  warn(fields: object, message: string): void {
    this.log.warn({ ...this.ids, ...fields }, message)
  }

  error(fields: object, message: string): void {
    this.log.error({ ...this.ids, ...fields }, message)
  }
}
