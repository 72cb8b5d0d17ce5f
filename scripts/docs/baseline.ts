/** Generates docs/baseline.txt, a listing of the public interface that shows every change to it in a diff. */
import type { Command } from 'commander'
import { describeApi } from '../../api/http/openapi.ts'
import { describedTools } from '../../api/mcp/schemas.ts'
import { topics } from '../../cli/core/topics.ts'
import { describeProgram } from '../../cli/program.ts'
import { errors } from '../../shared/contract/errors.ts'
import { openMetrics } from '../../shared/platform/metrics.ts'
import { settings } from './settings.ts'

export async function baseline(): Promise<string> {
  const sections = {
    'Error codes': Object.entries(errors).map(([name, { status, title }]) => `${status} ${name}: ${title}`),
    'Exit codes': [topics['exit-codes']!()],
    Metrics: await metrics(),
    Settings: [settings()],
    Help: await helpTexts(),
    'MCP tools': [asJson(describedTools())],
    OpenAPI: [asJson(describeApi())],
  }
  return Object.entries(sections)
    .map(([title, lines]) => `=== ${title} ===\n\n${lines.join('\n').trim()}\n`)
    .join('\n')
}

async function metrics(): Promise<string[]> {
  const found = await openMetrics('worker').registry.getMetricsAsJSON()
  return found
    .filter(({ name }) => name.startsWith('sandlot_'))
    .map(({ name, help, type }) => `${name} (${type}): ${help}`)
    .sort()
}

async function helpTexts(): Promise<string[]> {
  const { program, load } = describeProgram()
  const texts: string[] = []
  const visit = async (command: Command) => {
    texts.push(command.helpInformation())
    for (const child of command.commands) {
      await load(child)
      await visit(child)
    }
  }
  await visit(program)
  return texts
}

const asJson = (value: unknown): string => JSON.stringify(value, null, 1)
