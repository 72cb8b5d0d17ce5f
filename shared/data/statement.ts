/**
 * Typed statements. Kysely builds them from the entities, so a wrong column, a missing value or a changed type does not
 * compile. Each is built once, with markers for its values, and prepared under its name once per connection.
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

/** Takes `Values` and returns rows of type `Row`. */
export interface Statement<Values, Row> {
  readonly name: string
  compile(builder: Builder): Compiled<Values, Row>
}

export interface Compiled<Values, Row> {
  readonly text: string
  /** In the order of the statement's parameters. */
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
 * Defines a statement, as in `statement<{ id: string }>()('sandbox by id', (db, { id }) => db.selectFrom('sandbox')…)`.
 * It must list its columns, because a prepared `select *` fails after a migration adds one. `build` receives markers
 * instead of values, and can use them only in SQL.
 * @param name unique among all statements, because PostgreSQL caches the plan under it
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
 * Inlines constants. With a parameter instead, PostgreSQL could not prove that `status = 'running'` matches a partial
 * index.
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

/** The row of a statement that returns at most one. */
export const first = async <Row>(rows: Promise<Row[]>): Promise<Row | undefined> => (await rows)[0]

/** The row of a statement that always returns exactly one. */
export const only = async <Row>(rows: Promise<Row[]>): Promise<Row> => (await rows)[0]!

export const hasRow = async (rows: Promise<unknown[]>): Promise<boolean> => (await rows).length > 0

/** Awaits a statement without rows. */
export const done = async (rows: Promise<unknown[]>): Promise<void> => void (await rows)
