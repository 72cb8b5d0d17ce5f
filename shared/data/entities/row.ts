import type { EntitySchemaWithMeta, InferKyselyTable } from '@mikro-orm/postgresql'
import type { Selectable } from 'kysely'

/** A row of a table, as statements give it. */
export type RowOf<Entity extends EntitySchemaWithMeta> = Selectable<InferKyselyTable<Entity>>
