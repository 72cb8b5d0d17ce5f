/** Supported MCP clients, with the paths and formats of their settings. */
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
  /** The key of the object that contains the servers. Default: `mcpServers`. */
  section?: string
  /**
   * Returns possible paths of the project settings. The first existing file is used, or else the first path.
   */
  project?: (folders: ConfigFolders) => string[]
  user: (folders: ConfigFolders) => string[]
  /** Returns the entry for a local server. By default, it has the fields `command` and `args`. */
  local?(server: LocalServer): ServerEntry
  /**
   * Returns the entry for an HTTP server. Undefined if the client cannot read the key from the environment.
   */
  http?(url: string): ServerEntry
  /** Fields that Sandlot never writes but removes from existing entries. Other fields belong to the user. */
  moreManaged?: string[]
}

/** Environment variable from which MCP clients read the API key, so that their settings do not contain it. */
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
    moreManaged: ['type'],
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

/** Returns a server's entry, or undefined for an HTTP server that the MCP client does not support. */
export const entryOf = ({ local, http }: Target, server: Server): ServerEntry | undefined =>
  'url' in server ? http?.(server.url) : (local?.(server) ?? { ...server })

export const managedFields = (target: Target): string[] => [
  ...(target.moreManaged ?? []),
  ...[{ command: '', args: [] }, { url: '' }].flatMap((server) => Object.keys(entryOf(target, server) ?? {})),
]
