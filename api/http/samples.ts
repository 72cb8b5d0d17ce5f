import type { Endpoint } from '../../shared/contract/endpoint.ts'
import { quote } from '../../shared/contract/shell-words.ts'

export interface Sample {
  lang: 'Shell'
  label: 'curl' | 'client'
  source: string
}

const variables: Record<string, string> = { id: '$SANDBOX_ID', exec_id: '$EXEC_ID', key_id: '$KEY_ID' }
const credentials = { none: undefined, key: '$SANDLOT_API_KEY', token: '$TOKEN' }

export function samplesOf(endpoint: Endpoint): Sample[] {
  const { rawReply, example } = endpoint
  return [
    ...(rawReply === 'websocket' ? [] : [{ lang: 'Shell', label: 'curl', source: curl(endpoint) } as const]),
    ...(example.client ? [{ lang: 'Shell', label: 'client', source: example.client } as const] : []),
  ]
}

function curl({ method, path, credential, rawReply, example }: Endpoint): string {
  const { params = {}, query = {}, headers = {}, body, file } = example
  const filled = path.replace(/:(\w+)/g, (_, name: string) => params[name] ?? variables[name]!)
  const search = new URLSearchParams(query).toString()
  const key = credentials[credential]
  const uploads = method === 'PUT' && file !== undefined
  const implied = uploads ? 'PUT' : body === undefined && file === undefined ? 'GET' : 'POST'
  const call = [
    rawReply === 'text/event-stream' ? 'curl -N' : 'curl',
    ...(method === implied ? [] : [`-X ${method}`]),
    `"$SANDLOT_URL${filled}${search === '' ? '' : `?${search}`}"`,
  ]
  const rest = [
    ...(key === undefined ? [] : [`-H "Authorization: Bearer ${key}"`]),
    ...Object.entries(headers).map(([name, value]) => `-H ${quote(`${name}: ${value}`)}`),
    ...(body === undefined ? [] : [`--json ${quote(JSON.stringify(body))}`]),
    ...(file === undefined ? [] : [uploads ? `-T ${file}` : `--data-binary @${file}`]),
  ]
  return [call.join(' '), ...rest].join(' \\\n  ')
}
