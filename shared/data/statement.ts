/**
 * Prepared statements, which Kysely checks against the entities at compile time. Every connection prepares
 * each statement once, under the statement's name.
 */
import {
  type CompiledQuery,
  type Kysely,
  type KyselyPlugin,
  OperationNodeTransformer,
  type QueryExecutorProvider,
  type ValueNode,
} from 'kysely'
import type { Tables } from './entities/index.ts'

export type Builder = Kysely<Tables>

export interface Statement<Values, Row> {
  readonly name: string
  compile(builder: Builder): Compiled<Values, Row>
}

export interface Compiled<Values, Row> {
  readonly text: string
  bind(values: Values): unknown[]
  readonly row?: Row
}

interface Buildable<Row> {
  compile(executor: QueryExecutorProvider): CompiledQuery<Row>
}

class Marker {
  readonly name: string

  constructor(name: string) {
    this.name = name
  }
}

/**
 * Defines a prepared statement. The statement must list its columns, because a prepared `select *` fails
 * after a migration adds a column.
 * @param name unique, because PostgreSQL stores the prepared statement under this name
 * @param build receives markers instead of values, and can use them only inside SQL
 */
export const statement =
  <Values = Record<never, never>>() =>
  <Row>(name: string, build: (db: Builder, values: Values) => Buildable<Row>): Statement<Values, Row> => {
    let compiled: Compiled<Values, Row> | undefined
    return {
      name,
      compile: (builder) => {
        if (compiled) return compiled
        const plain = builder.withPlugin(constantsInText)
        compiled = compile(build(plain, markers as Values), plain)
        return compiled
      },
    }
  }

const markers: unknown = new Proxy({}, { get: (_, name) => new Marker(String(name)) })

/**
 * Writes constants into the SQL text. With a parameter, PostgreSQL could not prove that `status = 'running'`
 * matches a partial index.
 */
class ConstantsInText extends OperationNodeTransformer implements KyselyPlugin {
  transformQuery: KyselyPlugin['transformQuery'] = ({ node, queryId }) => this.transformNode(node, queryId)
  transformResult: KyselyPlugin['transformResult'] = async ({ result }) => result

  protected override transformValue(node: ValueNode): ValueNode {
    return node.value instanceof Marker ? node : { ...node, immediate: true }
  }
}

const constantsInText = new ConstantsInText()

function compile<Values, Row>(built: Buildable<Row>, builder: Builder): Compiled<Values, Row> {
  const { sql, parameters } = built.compile(builder)
  return {
    text: sql,
    bind: (values) => parameters.map((it) => (it instanceof Marker ? values[it.name as keyof Values] : it)),
  }
}

/** For statements that return at most one row. */
export const first = async <Row>(rows: Promise<Row[]>): Promise<Row | undefined> => (await rows)[0]

/** For statements that always return exactly one row. */
export const only = async <Row>(rows: Promise<Row[]>): Promise<Row> => (await rows)[0]!

export const hasRow = async (rows: Promise<unknown[]>): Promise<boolean> => (await rows).length > 0

export const done = async (rows: Promise<unknown[]>): Promise<void> => void (await rows)
