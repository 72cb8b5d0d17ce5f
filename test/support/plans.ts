/** Reads the query plans that PostgreSQL logs with auto_explain. */
import { readFileSync } from 'node:fs'
import type { Database } from '../../shared/data/database.ts'

export interface ExplainedStatement {
  text: string
  ms: number
  scans: Scan[]
}

interface Scan {
  table: string
  /** For example `Seq Scan` or `Index Only Scan`. */
  kind: string
  index: string | undefined
  /** Rows that were read, including rows removed by a filter. */
  rows: number
}

/** Logs the plan of each statement on new connections to this database. */
export async function explainEverything(db: Database, database = 'sandlot'): Promise<void> {
  const settings = {
    session_preload_libraries: 'auto_explain',
    // Uses the same plan for all parameters.
    plan_cache_mode: 'force_generic_plan',
    'auto_explain.log_min_duration': '0',
    'auto_explain.log_analyze': 'on',
    'auto_explain.log_timing': 'off',
    'auto_explain.log_format': 'json',
    // Includes statements of triggers and foreign keys.
    'auto_explain.log_nested_statements': 'on',
  }
  await db.query("load 'auto_explain'")
  for (const [name, value] of Object.entries(settings)) {
    await db.query(`alter database ${database} set ${name} = '${value}'`)
  }
}

export function readPlans(log: string): ExplainedStatement[] {
  const entries = readFileSync(log, 'utf8').matchAll(/duration: ([\d.]+) ms {2}plan:\n((?:\t.*\n)+)/g)
  return [...entries].map(([, ms, json]) => {
    const { 'Query Text': text, Plan } = JSON.parse(json!) as { 'Query Text': string; Plan: Node }
    return { text: text.replace(/\s+/g, ' ').trim(), ms: Number(ms), scans: scansOf(Plan) }
  })
}

interface Node {
  'Node Type': string
  'Relation Name'?: string
  'Index Name'?: string
  'Actual Rows'?: number
  'Actual Loops'?: number
  'Rows Removed by Filter'?: number
  'Rows Removed by Index Recheck'?: number
  Plans?: Node[]
}

function scansOf(node: Node): Scan[] {
  const below = (node.Plans ?? []).flatMap(scansOf)
  const table = node['Relation Name']
  if (table === undefined || !node['Node Type'].endsWith('Scan')) return below
  const found = node['Actual Rows'] ?? 0
  const removed = (node['Rows Removed by Filter'] ?? 0) + (node['Rows Removed by Index Recheck'] ?? 0)
  const rows = (found + removed) * (node['Actual Loops'] ?? 0)
  const index = node['Index Name'] ?? node.Plans?.find((child) => 'Index Name' in child)?.['Index Name']
  return [{ table, kind: node['Node Type'], index, rows }, ...below]
}
