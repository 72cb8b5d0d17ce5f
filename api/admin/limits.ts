/** Overrides limits for individual accounts. Changes take effect within a second. */
import {
  changeOverrides,
  type OverrideColumn,
  type Overrides,
  readOverrides,
} from '../../shared/data/accounts.ts'
import type { Database } from '../../shared/data/database.ts'
import type { Report } from './report.ts'

const limits = {
  concurrent: { column: 'concurrent_limit', setting: 'QUOTA_CONCURRENT_SANDBOXES', min: 0 },
  hours: { column: 'hours_limit', setting: 'QUOTA_SANDBOX_HOURS_PER_MONTH', min: 0 },
  seconds: { column: 'sandbox_seconds_limit', setting: 'SANDBOX_MAX_SECONDS', min: 1, max: 86_400 },
  'sandbox-ops': { column: 'sandbox_ops_per_minute', setting: 'RATE_SANDBOX_OPS_PER_MINUTE', min: 1 },
  'sandbox-lifecycle': {
    column: 'sandbox_lifecycle_per_minute',
    setting: 'RATE_SANDBOX_LIFECYCLE_PER_MINUTE',
    min: 1,
  },
} satisfies Record<string, { column: OverrideColumn; setting: string; min: number; max?: number }>

type LimitName = keyof typeof limits

export const limitNames = Object.keys(limits) as LimitName[]

/** New values for the limits to change. Null removes the override, so that the default applies again. */
type LimitChanges = Partial<Record<LimitName, number | null>>

export function readLimits(values: { [N in LimitName]?: string } & { reset?: boolean }): LimitChanges {
  const reset = values.reset ? Object.fromEntries(limitNames.map((name) => [name, null])) : {}
  const given = limitNames.flatMap((name) => {
    const text = values[name]
    return text === undefined ? [] : [[name, text === 'default' ? null : readFigure(name, text)] as const]
  })
  return { ...reset, ...Object.fromEntries(given) }
}

function readFigure(name: LimitName, text: string): number {
  const { min, max = 1_000_000 }: { min: number; max?: number } = limits[name]
  const figure = /^\d+(\.\d+)?$/.test(text) ? Number(text) : Number.NaN
  if (figure >= min && figure <= max && (name === 'hours' || Number.isInteger(figure))) return figure
  const kind = name === 'hours' ? 'number' : 'whole number'
  throw new Error(`Invalid value "${text}" for --${name}. Use a ${kind} from ${min} to ${max}, or "default".`)
}

export const changeLimits = (db: Database, accountId: string, changes: LimitChanges): Promise<void> =>
  changeOverrides(
    db,
    accountId,
    Object.fromEntries(Object.entries(changes).map(([name, figure]) => [columnOf(name), figure])),
  )

const columnOf = (name: string): OverrideColumn => limits[name as LimitName].column

export async function showLimits(
  db: Database,
  { id, email }: { id: string; email: string },
): Promise<Report> {
  const own = limitOverridesOf((await readOverrides(db, id))!)
  const lines = limitNames.map(
    (name) => `${name.padEnd(18)} ${own[name] ?? `default (${limits[name].setting})`}`,
  )
  return { value: { id, email, limits: own }, text: lines.join('\n') }
}

export const limitOverridesOf = (row: Overrides): LimitOverrides =>
  Object.fromEntries(limitNames.map((name) => [name, row[limits[name].column] ?? null])) as LimitOverrides

type LimitOverrides = Record<LimitName, number | null>

export const describeLimitOverrides = (own: LimitOverrides): string =>
  limitNames
    .filter((name) => own[name] !== null)
    .map((name) => `${name}=${own[name]}`)
    .join(' ')
