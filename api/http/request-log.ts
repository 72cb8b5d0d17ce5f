import type { Logger } from '../../shared/platform/log.ts'

/**
 * Adds the IDs of a request to its log lines. A child logger for each ID would use about as much CPU as the rest
 * of a small request.
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
