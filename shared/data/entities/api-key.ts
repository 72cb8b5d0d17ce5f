import { defineEntity, p } from '@mikro-orm/core'
import type { Scope } from '../../contract/endpoint.ts'

export const ApiKey = defineEntity({
  name: 'ApiKey',
  tableName: 'api_key',
  properties: {
    id: p.text().primary(),
    account_id: p.text(),
    name: p.text().nullable(),
    hash: p.blob().$type<Buffer>(),
    last_four: p.text(),
    scope: p.text().$type<Scope>().default('full'),
    created_at: p.datetime(3).defaultRaw('sandlot_now()'),
    expires_at: p.datetime(3).nullable(),
    revoked_at: p.datetime(3).nullable(),
    last_used_at: p.datetime(3).nullable(),
    is_replaced: p.boolean().default(false),
    /** Original lifetime of a key that was rotated. Null if the key had no expiry, or was never rotated. */
    lifetime: p.interval().nullable(),
  },
})
