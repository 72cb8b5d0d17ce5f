import type { EntitySchemaWithMeta, InferKyselyTable } from '@mikro-orm/postgresql'
import type { Selectable } from 'kysely'

export type RowOf<Entity extends EntitySchemaWithMeta> = Selectable<InferKyselyTable<Entity>>
