import { defineCommand } from '../core/command.ts'
import { version } from '../core/version.ts'

export const define = defineCommand({
  examples: ['sandlot version', 'sandlot version --json'],
  fields: ['version'],
  handle: async ({ output }) => output.result({ version }, `${version}\n`),
})
