/** Runs MCP tools. A tool call runs the handler of the corresponding route, with the same limits. */
import { ProtocolError, ProtocolErrorCode } from '@modelcontextprotocol/server'
import { resumption, type Tool, type ToolName, tools } from '../../shared/contract/mcp.ts'
import { Problem } from '../../shared/platform/problem.ts'
import type { App } from '../app.ts'
import { invalid } from '../errors/invalid.ts'
import { resultUnderKey } from '../exec/exec-by-idempotency-key.ts'
import { asProblem, countRefusal } from '../http/errors.ts'
import type { Invocation, ServedRoute } from '../http/route.ts'
import { nextStep } from './advice.ts'
import { cutToSize } from './output.ts'
import { describedTools, sessionInput } from './schemas.ts'
import type { Ticket } from './ticket.ts'

export interface CommandKey {
  sandboxId: string
  key: string
}

interface ToolResult {
  content: { type: 'text'; text: string }[]
  structuredContent?: object
  isError?: true
}

type ToolCaller = Pick<Invocation, 'account' | 'requestId' | 'log' | 'signal'>

/**
 * @param command sandbox and Idempotency-Key of an `exec` call that the client can resume. The command then
 *   keeps running for `resumption.graceMs` after a disconnect.
 * @returns the route's response, truncated for a model. A route's error is also returned as a result.
 * @throws {ProtocolError} if the tool is unknown
 */
export async function runTool(
  app: App,
  routes: ServedRoute[],
  { name, arguments: given = {} }: { name: string; arguments?: Record<string, unknown> | undefined },
  caller: ToolCaller,
  command: CommandKey | undefined,
): Promise<ToolResult> {
  if (!Object.hasOwn(tools, name)) throw unknownTool(name)
  const tool: Tool = tools[name as ToolName]
  const route = routes.find(({ endpoint }) => endpoint.name === tool.endpoint.name)
  if (!route) throw unknownTool(name)
  return toResult(app, name, caller, async () => {
    const { account, requestId, log, signal } = caller
    const parts = partsOf(name as ToolName, tool, given)
    const kept = command && {
      headers: { 'idempotency-key': command.key },
      body: { ...parts.body, grace_ms: resumption.graceMs },
    }
    const { reply } = await route.invoke(app, { account, requestId, log, signal, ...parts, ...kept })
    return reply as object
  })
}

export const rejoinTool = (app: App, { tool, command }: Ticket, caller: ToolCaller): Promise<ToolResult> =>
  toResult(app, tool, caller, () => {
    if (!command) throw resultLost(tool)
    const { account, requestId, signal } = caller
    return resultUnderKey(app, { ...command, accountId: account.id, requestId, signal })
  })

async function toResult(
  app: App,
  name: string,
  { requestId, log, signal }: ToolCaller,
  run: () => Promise<object>,
): Promise<ToolResult> {
  const startedAt = performance.now()
  let code: string | undefined
  try {
    const { result, notes } = cutToSize(await run())
    const texts = [JSON.stringify(result), ...notes]
    return { content: texts.map((text) => ({ type: 'text', text })), structuredContent: result }
  } catch (error) {
    const problem = asProblem(error, { log, signal })
    code = problem.code
    countRefusal(app.context.metrics, problem, tools[name as ToolName].endpoint.name === 'createSandbox')
    return refusal(tools[name as ToolName], problem, requestId)
  } finally {
    log.info({ tool: name, code, ms: Math.round(performance.now() - startedAt) }, 'tool')
  }
}

/**
 * Returns the error for a lost result. When a client disconnects, the results of all tools except `exec` are
 * lost.
 */
function resultLost(name: ToolName): Problem {
  const next = tools[name].readOnly
    ? 'Make the same call again.'
    : 'Check whether the call took effect. If it did not, call this tool again.'
  return new Problem(
    'unavailable',
    `The connection broke before the result of ${name} was sent, and the result is not stored.`,
    { members: { next } },
  )
}

const unknownTool = (name: string) =>
  new ProtocolError(
    ProtocolErrorCode.InvalidParams,
    `Unknown tool ${name}. Call tools/list to get the available tools.`,
  )

function partsOf(name: ToolName, { endpoint, always, defaults }: Tool, given: Record<string, unknown>) {
  const { inputSchema } = describedTools().find((tool) => tool.name === name)!
  const unknown = Object.keys(given).filter((key) => !Object.hasOwn(inputSchema.properties, key))
  const missing = (inputSchema.required ?? []).filter((key) => given[key] === undefined)
  const wrong = [
    ...unknown.map((path) => ({ path, message: 'is unknown' })),
    ...missing.map((path) => ({ path, message: 'is required' })),
  ]
  if (wrong.length > 0) throw invalid(...wrong)
  const { [sessionInput]: id, ...rest } = { ...defaults, ...given }
  if (endpoint.query) {
    const texts = Object.entries(rest).map(([name, value]) => [name, asInQuery(value)])
    return { params: { id }, query: Object.fromEntries(texts) }
  }
  return { params: { id }, body: endpoint.body && { ...rest, ...always } }
}

const asInQuery = (value: unknown) => (typeof value === 'boolean' ? String(value) : value)

/** Returns an error as a tool result. It omits structured content, which could be mistaken for a success. */
function refusal(tool: Tool, problem: Problem, requestId: string): ToolResult {
  const { code, status, message, retryAfterSeconds, members } = problem
  const described = {
    code,
    status,
    detail: message,
    next: nextStep(code, tool),
    ...(retryAfterSeconds === undefined ? {} : { retry_after: Math.max(1, Math.ceil(retryAfterSeconds)) }),
    request_id: requestId,
    ...members,
  }
  return { content: [{ type: 'text', text: JSON.stringify(described) }], isError: true }
}
