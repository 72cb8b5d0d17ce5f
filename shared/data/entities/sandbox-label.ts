import { defineEntity, p } from '@mikro-orm/core'

/** One row for each entry of a sandbox's metadata. A trigger of the table `sandbox` writes the rows. */
export const SandboxLabel = defineEntity({
  name: 'SandboxLabel',
  tableName: 'sandbox_label',
  properties: {
    account_id: p.text().primary(),
    key: p.text().primary(),
    value: p.text().primary(),
    sandbox_id: p.text().primary(),
  },
})
