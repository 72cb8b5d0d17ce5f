/** `sandlot mcp serve`: the tools of /v1/mcp for an agent that starts its servers itself. */
import { defineCommand } from '../../core/command.ts'
import { bridge } from '../../mcp/bridge.ts'
import { connect } from '../../mcp/connection.ts'

export const define = defineCommand({
  notes: `
Speaks the Model Context Protocol on stdin and stdout until stdin ends, with the saved address and API key.
An MCP client starts it; \`sandlot mcp init\` tells it to.`,
  examples: ['sandlot mcp serve'],
  handle: async ({ settings, trace }) => {
    // The client is gone: what still runs for it ends with us.
    process.stdout.once('error', () => process.exit())
    await bridge(connect(settings, trace), process.stdin, (line) => process.stdout.write(line))
  },
})
