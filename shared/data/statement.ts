/**
 * Prepared SQL statements. Every connection prepares each statement once, under its name. Kysely checks
 * statements against the entities.
 */
import {
  type CompiledQuery,
  type Kysely,
  type KyselyPlugin,
  type OperationNode,
  OperationNodeTransformer,
  type QueryExecutorProvider,
  SelectQueryNode,
  type ValueNode,
} from 'kysely'
import type { Tables } from './entities.ts'

export type Builder = Kysely<Tables>

export interface Statement<Values, Row> {
  readonly name: string
  compile(builder: Builder): Compiled<Values, Row>
}

interface Compiled<Values, Row> {
  readonly text: string
  /** Whether the statement is a `select` that locks no rows. */
  readonly isRead: boolean
  bind(values: Values): unknown[]
  readonly row?: Row
}

interface Buildable<Row> {
  compile(executor: QueryExecutorProvider): CompiledQuery<Row>
}

type NoValues = Record<never, never>
type Definition<Values, Row> = [name: string, build: (db: Builder, values: Values) => Buildable<Row>]

class Marker {
  readonly name: string

  constructor(name: string) {
    this.name = name
  }
}

interface Runner {
  run<Values, Row>(statement: Statement<Values, Row>, ...values: ValuesOf<Values>): Promise<Row[]>
}
export type ValuesOf<Values> = keyof Values extends never ? [] : [Values]

type Query<Values, Result> = (db: Runner, ...values: ValuesOf<Values>) => Promise<Result>

/**
 * Returns a function that runs a prepared statement. A statement must list its columns, because a prepared
 * `select *` fails after a migration adds a column.
 * @param name unique, because PostgreSQL stores the prepared statement under this name
 * @param build receives placeholders instead of the values, and may use them only inside SQL
 */
export const rows =
  <Values = NoValues>() =>
  <Row>(...[name, build]: Definition<Values, Row>): Query<Values, Row[]> => {
    let compiled: Compiled<Values, Row> | undefined
    const statement: Statement<Values, Row> = {
      name,
      compile: (builder) => {
        if (compiled) return compiled
        const plain = builder.withPlugin(constantsInText)
        compiled = compile(build(plain, markers as Values), plain)
        return compiled
      },
    }
    return (db, ...values) => db.run(statement, ...values)
  }

const markers: unknown = new Proxy({}, { get: (_, name) => new Marker(String(name)) })

/**
 * Writes constants into the SQL text, so that PostgreSQL can prove that `status = 'running'` matches a
 * partial index.
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
  const { sql, parameters, query } = built.compile(builder)
  return {
    text: sql,
    isRead: isRead(query),
    bind: (values) => parameters.map((it) => (it instanceof Marker ? values[it.name as keyof Values] : it)),
  }
}

const isRead = (node: OperationNode): boolean =>
  SelectQueryNode.is(node) &&
  !node.endModifiers &&
  (node.with?.expressions ?? []).every(({ expression }) => isRead(expression))

/** Like {@link rows}, for a statement that returns at most one row. */
export const first =
  <Values = NoValues>() =>
  <Row>(...definition: Definition<Values, Row>): Query<Values, Row | undefined> => {
    const run = rows<Values>()(...definition)
    return async (db, ...values) => (await run(db, ...values))[0]
  }

/** Like {@link rows}, for a statement that always returns exactly one row. */
export const only =
  <Values = NoValues>() =>
  <Row>(...definition: Definition<Values, Row>): Query<Values, Row> => {
    const run = rows<Values>()(...definition)
    return async (db, ...values) => (await run(db, ...values))[0]!
  }

/** Like {@link rows}, but returns whether the statement returned a row. */
export const hasRow =
  <Values = NoValues>() =>
  (...definition: Definition<Values, unknown>): Query<Values, boolean> => {
    const run = rows<Values>()(...definition)
    return async (db, ...values) => (await run(db, ...values)).length > 0
  }

/** Like {@link rows}, but discards the rows. */
export const done =
  <Values = NoValues>() =>
  (...definition: Definition<Values, unknown>): Query<Values, void> => {
    const run = rows<Values>()(...definition)
    return async (db, ...values) => void (await run(db, ...values))
  }
