import { defineCommand } from '../core/command.ts'

export const define = defineCommand({
  examples: ['sandlot openapi > openapi.json', 'sandlot openapi --url http://localhost:8080'],
  handle: async ({ api, output }) => {
    const description = await api.call('getOpenApi', {})
    output.result(description, `${JSON.stringify(description, null, 2)}\n`)
  },
})
