import { defineCommand } from '../../core/command.ts'
import { bridge } from '../../mcp/bridge.ts'
import { connect } from '../../mcp/connection.ts'

export const define = defineCommand({
  notes: `
Speaks the Model Context Protocol on stdin and stdout until stdin ends, with the saved address and API key.
MCP clients start it; \`sandlot mcp init\` configures them.`,
  examples: ['sandlot mcp serve'],
  handle: async ({ api }) => {
    // The MCP client has exited. Ending this process ends its calls.
    process.stdout.once('error', () => process.exit())
    await bridge(connect(api), process.stdin, (line) => process.stdout.write(line))
  },
})
