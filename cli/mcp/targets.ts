/** The MCP clients that `mcp init` knows: where each keeps its servers, and in what shape. */
import { join } from 'node:path'
import type { Settings } from '../core/settings.ts'

export type ConfigFolders = ReturnType<Settings['folders']>
export type TargetScope = 'project' | 'user'
export const scopes: readonly TargetScope[] = ['project', 'user']

export type Server = LocalServer | { url: string }
interface LocalServer {
  command: string
  args: string[]
}

export type ServerEntry = Record<string, unknown>

export interface Target {
  title: string
  /** The key of the file that holds the servers by their names; `mcpServers`, where it is not said. */
  section?: string
  /** Where it may be: the first that exists, else the first. */
  project?: (folders: ConfigFolders) => string[]
  user: (folders: ConfigFolders) => string[]
  /** The entry of a server that the client starts; command and arguments, where it is not said. */
  local?(server: LocalServer): ServerEntry
  /** Missing when the client cannot use HTTP, or only with the key written into the file. */
  http?(url: string): ServerEntry
  /** Members of an entry that are ours to change, beside those that we write; all else in it is the user's. */
  moreOwn?: string[]
}

/** The key stays in the environment of the client; its settings only name it. */
const variable = 'SANDLOT_API_KEY'
const bearer = (reference: string) => ({ Authorization: `Bearer ${reference}` })

const applications = ({ platform, home, config, appData }: ConfigFolders): string => {
  if (platform === 'darwin') return join(home, 'Library', 'Application Support')
  if (platform === 'win32') return appData ?? join(home, 'AppData', 'Roaming')
  return config
}

export const targets: Record<string, Target> = {
  'claude-code': {
    title: 'Claude Code',
    project: ({ folder }) => [join(folder, '.mcp.json')],
    user: ({ home }) => [join(home, '.claude.json')],
    http: (url) => ({ type: 'http', url, headers: bearer(`\${${variable}}`) }),
    local: (server) => ({ type: 'stdio', ...server }),
  },
  'claude-desktop': {
    title: 'Claude Desktop',
    user: (folders) => [join(applications(folders), 'Claude', 'claude_desktop_config.json')],
  },
  cursor: {
    title: 'Cursor',
    project: ({ folder }) => [join(folder, '.cursor', 'mcp.json')],
    user: ({ home }) => [join(home, '.cursor', 'mcp.json')],
    http: (url) => ({ url, headers: bearer(`\${env:${variable}}`) }),
    moreOwn: ['type'],
  },
  vscode: {
    title: 'VS Code',
    section: 'servers',
    project: ({ folder }) => [join(folder, '.vscode', 'mcp.json')],
    user: (folders) => [join(applications(folders), 'Code', 'User', 'mcp.json')],
    http: (url) => ({ type: 'http', url, headers: bearer(`\${env:${variable}}`) }),
    local: (server) => ({ type: 'stdio', ...server }),
  },
  codex: {
    title: 'Codex',
    section: 'mcp_servers',
    project: ({ folder }) => [join(folder, '.codex', 'config.toml')],
    user: ({ home, codexHome }) => [join(codexHome || join(home, '.codex'), 'config.toml')],
    http: (url) => ({ url, bearer_token_env_var: variable }),
  },
  windsurf: {
    title: 'Windsurf',
    user: ({ home }) => [join(home, '.codeium', 'windsurf', 'mcp_config.json')],
    http: (url) => ({ serverUrl: url, headers: bearer(`\${env:${variable}}`) }),
  },
  gemini: {
    title: 'Gemini CLI',
    project: ({ folder }) => [join(folder, '.gemini', 'settings.json')],
    user: ({ home }) => [join(home, '.gemini', 'settings.json')],
    http: (url) => ({ httpUrl: url, headers: bearer(`$${variable}`) }),
  },
  zed: {
    title: 'Zed',
    section: 'context_servers',
    project: ({ folder }) => [join(folder, '.zed', 'settings.json')],
    user: ({ platform, home, config, appData }) => {
      if (platform === 'win32') return [join(appData ?? home, 'Zed', 'settings.json')]
      return [join(platform === 'darwin' ? join(home, '.config') : config, 'zed', 'settings.json')]
    },
  },
  opencode: {
    title: 'opencode',
    section: 'mcp',
    project: ({ folder }) => [join(folder, 'opencode.json'), join(folder, 'opencode.jsonc')],
    user: ({ config }) => [
      join(config, 'opencode', 'opencode.json'),
      join(config, 'opencode', 'opencode.jsonc'),
    ],
    http: (url) => ({ type: 'remote', url, headers: bearer(`{env:${variable}}`), enabled: true }),
    local: (server) => ({ type: 'local', command: [server.command, ...server.args], enabled: true }),
  },
}

export const sectionOf = ({ section = 'mcpServers' }: Target): string => section

export const isToml = (file: string): boolean => file.endsWith('.toml')

/** @returns undefined for a server over HTTP that the client cannot use */
export const entryOf = ({ local, http }: Target, server: Server): ServerEntry | undefined =>
  'url' in server ? http?.(server.url) : (local?.(server) ?? { ...server })

/** The members of an entry that are ours. */
export const ownOf = (target: Target): string[] => [
  ...(target.moreOwn ?? []),
  ...[{ command: '', args: [] }, { url: '' }].flatMap((server) => Object.keys(entryOf(target, server) ?? {})),
]
