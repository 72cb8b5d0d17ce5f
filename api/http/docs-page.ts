/** The OpenAPI description as a page. It has no script and loads nothing, so it looks the same wherever it is opened. */
import { errors } from '../../shared/contract/errors.ts'
import { describeApi } from './openapi.ts'

interface Schema {
  $ref?: string
  type?: string | string[]
  enum?: unknown[]
  const?: unknown
  anyOf?: Schema[]
  items?: Schema
  properties?: Record<string, Schema>
  required?: string[]
  description?: string
}

interface Operation {
  operationId: string
  summary: string
  security: Record<string, unknown>[]
  parameters: (Schema & { name: string; in: string; required: boolean; schema: Schema })[]
  requestBody?: { content: Content }
  responses: Record<string, { description: string; content?: Content }>
}

type Content = Record<string, { schema: Schema }>

let made: string | undefined

/** Made at the first call. */
export function docsPage(): string {
  made ??= makePage()
  return made
}

function makePage(): string {
  const { paths, components, info } = describeApi()
  const operations = Object.entries(paths).flatMap(([path, methods]) =>
    Object.entries(methods).map(([method, operation]) => ({
      title: `${method.toUpperCase()} ${path}`,
      operation: operation as unknown as Operation,
    })),
  )
  const { schemas } = components as { schemas: Record<string, Schema> }
  const links = operations.map(({ title, operation }) => link(operation.operationId, title))
  return `<!doctype html>
<html lang="en">
<meta charset="utf-8">
<meta name="viewport" content="width=device-width">
<title>Sandlot API</title>
<style>${style}</style>
<h1>Sandlot API</h1>
<p>${words(String((info as { description: unknown }).description))} The same for programs: <a href="openapi.json">openapi.json</a>.</p>
<nav><ul>${links.map((one) => `<li>${one}</li>`).join('')}</ul></nav>
${operations.map(({ title, operation }) => showOperation(title, operation)).join('\n')}
<h2>Objects</h2>
${Object.entries(schemas)
  .map(
    ([name, schema]) =>
      `<h3 id="${escapeHtml(name)}">${escapeHtml(name)}</h3>${showFields(fieldsOf(schema))}`,
  )
  .join('\n')}
<h2>Errors</h2>
${table(
  ['code', 'status', 'meaning'],
  Object.entries(errors).map(([code, { status, title }]) => [
    `<code>${code}</code>`,
    String(status),
    escapeHtml(title),
  ]),
)}
</html>
`
}

const style = `body{font:16px/1.5 system-ui,sans-serif;max-width:60rem;margin:2rem auto;padding:0 1rem}
table{border-collapse:collapse;margin:.5rem 0}td,th{text-align:left;vertical-align:top;padding:.2rem 1rem .2rem 0}
tr{border-top:1px solid #8884}code{font-size:.9em}h2{margin-top:2.5rem}:root{color-scheme:light dark}`

function showOperation(title: string, operation: Operation): string {
  const { operationId, summary, security, parameters, requestBody, responses } = operation
  const credential = Object.keys(security[0] ?? {})[0]
  const needs = credential === 'key' ? 'an API key' : credential === 'token' ? 'a session token' : 'nothing'
  const answers = Object.entries(responses).map(([status, { description, content }]) => [
    status,
    words(description) + (Number(status) < 400 ? showContent(content) : ''),
  ])
  const given = parameters.map((each) => [
    `<code>${escapeHtml(each.name)}</code>`,
    `in the ${each.in}${each.required ? '' : ', optional'}`,
    showType(each.schema),
    words(each.description),
  ])
  return `<h2 id="${escapeHtml(operationId)}"><code>${escapeHtml(title)}</code></h2>
<p>${words(summary)}. Needs ${needs}.</p>
${given.length === 0 ? '' : table(['parameter', '', 'type', ''], given)}
${requestBody ? `<p>Body:</p>${showContent(requestBody.content)}` : ''}
${table(['status', 'answer'], answers)}`
}

/** The fields of a JSON body; of any other body, the name of its type. */
function showContent(content: Content = {}): string {
  return Object.entries(content)
    .map(([type, { schema }]) => {
      if (type !== 'application/json') return ` <code>${escapeHtml(type)}</code>`
      return schema.properties ? showFields(fieldsOf(schema)) : ` ${showType(schema)}`
    })
    .join('')
}

const fieldsOf = ({ properties = {}, required = [] }: Schema): string[][] =>
  Object.entries(properties).map(([name, schema]) => [
    `<code>${escapeHtml(name)}</code>`,
    required.includes(name) ? '' : 'optional',
    showType(schema),
    words(schema.description),
  ])

const showFields = (fields: string[][]): string => table(['field', '', 'type', ''], fields)

function showType(schema: Schema): string {
  const { $ref, type, enum: values, anyOf, items } = schema
  if ($ref) return link($ref.slice($ref.lastIndexOf('/') + 1))
  if ('const' in schema) return showValue(schema.const)
  if (values) return values.map(showValue).join(' | ')
  if (anyOf) return anyOf.map(showType).join(' | ')
  if (type === 'array') return `list of ${showType(items ?? {})}`
  return escapeHtml([type ?? 'any'].flat().join(' | '))
}

const showValue = (value: unknown): string => `<code>${escapeHtml(JSON.stringify(value))}</code>`

const link = (id: string, text = id): string => `<a href="#${escapeHtml(id)}">${escapeHtml(text)}</a>`

const table = (head: string[], rows: string[][]): string =>
  `<table><tr>${head.map((cell) => `<th>${cell}</th>`).join('')}</tr>
${rows.map((cells) => `<tr>${cells.map((cell) => `<td>${cell}</td>`).join('')}</tr>`).join('\n')}</table>`

const escapeHtml = (text: string): string => text.replace(/[&<>"]/g, (each) => `&#${each.charCodeAt(0)};`)

/** Text between backticks in the contract is code. */
const words = (text = ''): string => escapeHtml(text).replace(/`([^`]+)`/g, '<code>$1</code>')
