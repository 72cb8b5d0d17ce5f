/** `sandlot openapi`: the service's description of itself. */
import { addExamples, type Define, handleWith } from '../core/command.ts'

export const define: Define = (command) => {
  addExamples(command, 'sandlot openapi > openapi.json', 'sandlot openapi --url http://localhost:8080')
  handleWith(command, async ({ api, output }) => {
    const description = await api.call('getOpenApi', {})
    output.result(description, `${JSON.stringify(description, null, 2)}\n`)
  })
}
