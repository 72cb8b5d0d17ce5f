/** Renders the OpenAPI description as an HTML page without scripts or external resources. */
import type { Endpoint } from '../../shared/contract/endpoint.ts'
import { errors } from '../../shared/contract/errors.ts'
import { families } from '../../shared/contract/index.ts'
import { escapeHtml, fieldsOf, link, type Schema, showFields, showType, words } from './docs-fields.ts'
import type { ApiDescription } from './openapi.ts'
import type { Sample } from './samples.ts'

export interface Operation {
  operationId: string
  summary: string
  description: string
  parameters: (Schema & { name: string; in: string; required: boolean; schema: Schema; explode?: true })[]
  requestBody?: { description?: string; content: Content }
  responses: Record<string, { description: string; content?: Content }>
  'x-codeSamples': Sample[]
}

type Content = Record<string, { schema: Schema }>

export function makeDocsPage({ components, info, paths }: ApiDescription): string {
  const showOperation = showOperationOf(paths)
  const { schemas } = components as { schemas: Record<string, Schema> }
  const { description } = info as { description: string }
  const groups = Object.entries(families).map(([name, { endpoints }]) => ({
    name,
    all: Object.values(endpoints),
  }))
  return `<!doctype html>
<html lang="en">
<meta charset="utf-8">
<meta name="viewport" content="width=device-width">
<title>Sandlot API</title>
<style>${style}</style>
<h1>Sandlot API</h1>
<p>${words(description)} As OpenAPI: <a href="openapi.json">openapi.json</a>.</p>
<p>The examples read the service URL from <code>SANDLOT_URL</code>, an API key from
<code>SANDLOT_API_KEY</code>, and a session token from <code>TOKEN</code>.</p>
<nav>
${groups.map(({ name, all }) => `<h2>${name}</h2><ul>${all.map(showEntry).join('\n')}</ul>`).join('\n')}
<h2>More</h2><ul><li>${link('objects', 'Objects')}</li><li>${link('errors', 'Errors')}</li></ul>
</nav>
<main>
${groups.map(({ name, all }) => `<h2>${name}</h2>\n${all.map(showOperation).join('\n')}`).join('\n')}
<h2 id="objects">Objects</h2>
${Object.entries(schemas)
  .map(([name, schema]) => `<h3 id="${name}">${name}</h3>${showFields(fieldsOf(schema))}`)
  .join('\n')}
<h2 id="errors">Errors</h2>
<p>An error is a ${link('Problem', 'problem document')} with one of these codes. Each route lists its specific error
codes. Errors about credentials, bodies, rate limits and the service itself are not listed, because every route can
return them.</p>
<dl>${Object.entries(errors)
    .map(
      ([code, { status, title }]) =>
        `<dt id="${errorId(code)}"><code>${code}</code> <i>${status}</i></dt><dd>${escapeHtml(title)}.</dd>`,
    )
    .join('\n')}</dl>
</main>
</html>
`
}

const style = `body{font:16px/1.5 system-ui,sans-serif;max-width:60rem;margin:2rem auto;padding:0 1rem;overflow-wrap:anywhere}
:root{color-scheme:light dark}code,pre{font-family:ui-monospace,monospace;font-size:.875em}
h2{margin-top:2.5rem}nav h2{font-size:1rem;margin:1rem 0 0}nav ul{list-style:none;margin:0;padding:0}nav li{padding:.15rem 0}
main h2{border-bottom:1px solid #8888}h3{margin-top:2rem}
pre{white-space:pre-wrap;background:#8881;padding:.5rem .75rem;border-radius:4px}
dl{margin:.5rem 0}dt{margin-top:.4rem}dd{margin:0 0 0 1rem}i{opacity:.7}`

const showEntry = ({ name, method, path, summary }: Endpoint): string =>
  `<li><a href="#${name}">${showRoute(method, path)}</a><br>${words(summary)}</li>`

const showRoute = (method: string, path: string): string =>
  `<code><b>${method}</b> ${path.replace(/:(\w+)/g, '{$1}').replaceAll('/', '<wbr>/')}</code>`

const showOperationOf = (paths: ApiDescription['paths']) => (endpoint: Endpoint) =>
  showOperation(
    endpoint,
    paths[endpoint.path.replace(/:(\w+)/g, '{$1}')]![endpoint.method.toLowerCase()] as unknown as Operation,
  )

function showOperation({ name, method, path, errors: own }: Endpoint, described: Operation): string {
  const { summary, parameters, requestBody } = described
  const given = parameters.flatMap(({ name, in: place, required, schema, description, explode }) =>
    explode
      ? fieldsOf(schema).map((field) => ({ ...field, note: `in the ${place}, ${words(description)}` }))
      : [
          {
            name,
            note: `in the ${place}${required ? '' : ', optional'}`,
            schema: { ...schema, ...(description === undefined ? {} : { description }) },
          },
        ],
  )
  const codes = own.map((code) => `<a href="#${errorId(code)}"><code>${code}</code></a>`)
  return `<h3 id="${name}">${showRoute(method, path)}</h3>
<p>${words(summary)}. ${words(described.description)}</p>
${described['x-codeSamples'].map(({ source }) => `<pre>${escapeHtml(source)}</pre>`).join('\n')}
${given.length === 0 ? '' : `<p>Parameters:</p>${showFields(given)}`}
${requestBody ? showBody(requestBody) : ''}
<p>Responses:</p>${showAnswers(described)}
${codes.length === 0 ? '' : `<p>Specific errors: ${codes.join(', ')}.</p>`}`
}

function showBody({ description, content }: NonNullable<Operation['requestBody']>): string {
  const bytes = description === undefined ? '' : `, ${words(description.toLowerCase())}`
  return `<p>Body${bytes}:</p>${showContent(content)}`
}

function showAnswers({ responses }: Operation): string {
  const all = Object.entries(responses).filter(([status]) => Number(status) < 400)
  return `<dl>${all
    .map(
      ([status, { description, content }]) =>
        `<dt><code>${status}</code> <i>${words(description)}</i></dt><dd>${showContent(content)}</dd>`,
    )
    .join('\n')}</dl>`
}

function showContent(content: Content = {}): string {
  return Object.entries(content)
    .map(([type, { schema }]) => {
      if (type !== 'application/json') return `<p><code>${escapeHtml(type)}</code></p>`
      return schema.properties ? showFields(fieldsOf(schema)) : showType(schema)
    })
    .join('')
}

const errorId = (code: string): string => `error-${code}`
