/** Entities must match the migrations, because queries are typed by entities. */
import { expect, test } from 'vitest'
import { makeOrm } from '../shared/data/database.ts'
import { entities } from '../shared/data/entities.ts'
import { shareDatabase } from './support/shared.ts'

const { made, db } = shareDatabase()

/** PostgreSQL's type names for entity types. */
const alike: Record<string, string> = {
  'timestamptz(3)': 'timestamp(3) with time zone',
  int: 'integer',
}

async function ofEntities() {
  const orm = makeOrm(made.url)
  const columns = entities.flatMap(({ meta: { className, tableName } }) =>
    Object.values(orm.getMetadata().getByClassName(className).properties).map((property) => {
      const type = property.columnTypes[0]!
      return {
        table: tableName,
        column: property.fieldNames[0],
        type: alike[type] ?? type,
        nullable: property.nullable ?? false,
        default: property.default !== undefined || property.defaultRaw !== undefined,
      }
    }),
  )
  await orm.close(true)
  return columns
}

const ofDatabase = () =>
  db.query(
    `select relname as table, attname as column, format_type(atttypid, atttypmod) as type,
            not attnotnull as nullable, atthasdef as default
       from pg_attribute join pg_class on pg_class.oid = attrelid
      where relnamespace = 'public'::regnamespace and relkind = 'r' and attnum > 0 and not attisdropped
        and relname not like 'mikro_orm%'`,
  )

const inOrder = (columns: object[]) => columns.map((column) => JSON.stringify(column)).sort()

test('the entities match the tables, columns, types, nullability and defaults of the database', async () => {
  expect(inOrder(await ofEntities())).toEqual(inOrder(await ofDatabase()))
})
