import type { Define } from '../core/command.ts'

interface Leaf {
  summary: string
  aliases?: string[] | undefined
  hidden?: true
  load(): Promise<{ define: Define }>
}
interface Group {
  summary: string
  commands: Branch
}
export type Entry = Leaf | Group
export interface Branch {
  [name: string]: Entry
}

const leaf = (summary: string, load: Leaf['load'], aliases?: string[]): Leaf => ({ summary, load, aliases })

export const commands: Branch = {
  signup: leaf('create an account and save an API key', () => import('./signup.ts')),
  login: leaf('log in for 15 minutes, and save an API key if none is saved', () => import('./login.ts')),
  logout: leaf('forget the login and the saved API key', () => import('./logout.ts')),
  session: {
    summary: 'create, show, list, select and destroy sandboxes (sessions)',
    commands: {
      create: leaf('create a session and print its id', () => import('./session/create.ts')),
      get: leaf('show a session', () => import('./session/get.ts')),
      ls: leaf('list sessions', () => import('./session/ls.ts'), ['list']),
      use: leaf('set the current session', () => import('./session/use.ts')),
      update: leaf("change a session's name, labels or lifetime", () => import('./session/update.ts')),
      reset: leaf('end all processes in a session and keep its files', () => import('./session/reset.ts')),
      rm: leaf('destroy sessions', () => import('./session/rm.ts'), ['delete']),
    },
  },
  ls: leaf('list sessions, as `session ls` does', () => import('./session/ls.ts')),
  rm: leaf('destroy sessions, as `session rm` does', () => import('./session/rm.ts')),
  exec: leaf('run a command in a session', () => import('./exec.ts')),
  ps: leaf("list a session's commands, newest first", () => import('./ps.ts')),
  logs: leaf('print the output of a command', () => import('./logs.ts')),
  kill: leaf('send a signal to a command', () => import('./kill.ts')),
  attach: leaf('reconnect to a command that was started with -t', () => import('./attach.ts')),
  files: {
    summary: 'work with the files of a session',
    commands: {
      view: leaf('print a file, or some of its lines', () => import('./files/view.ts')),
      create: leaf('write a file', () => import('./files/create.ts')),
      edit: leaf('replace text in a file, or open it in an editor', () => import('./files/edit.ts')),
      ls: leaf('list a folder', () => import('./files/ls.ts'), ['list']),
      glob: leaf('find paths that match a pattern', () => import('./files/glob.ts')),
      grep: leaf('find lines that match a pattern', () => import('./files/grep.ts')),
      get: leaf('download a file of any size', () => import('./files/get.ts')),
      put: leaf('upload a file of any size', () => import('./files/put.ts')),
      stat: leaf('show the type, mode, owner, size and time of a path', () => import('./files/stat.ts')),
      watch: leaf('print the changes in a folder as they happen', () => import('./files/watch.ts')),
      mkdir: leaf('create a folder', () => import('./files/mkdir.ts')),
      mv: leaf('move or rename a file or folder', () => import('./files/mv.ts')),
      rm: leaf('remove a file or folder', () => import('./files/rm.ts')),
      chmod: leaf('set the permissions of a file or folder', () => import('./files/chmod.ts')),
    },
  },
  cp: leaf('copy files and folders to or from a session', () => import('./cp.ts')),
  forward: leaf('forward local ports to ports in a session', () => import('./forward.ts')),
  allowlist: {
    summary: "manage which commands are allowed in the account's sessions",
    commands: {
      get: leaf('print the list', () => import('./allowlist/get.ts')),
      set: leaf('replace the list', () => import('./allowlist/set.ts')),
      clear: leaf('remove the list, so that all commands are allowed', () => import('./allowlist/clear.ts')),
      check: leaf('check whether a command would be allowed', () => import('./allowlist/check.ts')),
    },
  },
  secrets: {
    summary: 'manage environment variables that are stored encrypted and redacted from output',
    commands: {
      create: leaf('set a secret', () => import('./secrets/create.ts')),
      ls: leaf('list the names of secrets', () => import('./secrets/ls.ts'), ['list']),
      rm: leaf('delete a secret', () => import('./secrets/rm.ts'), ['delete']),
    },
  },
  whoami: leaf('show the account, its usage and its limits', () => import('./whoami.ts')),
  keys: {
    summary: 'manage API keys; asks for your email address and password unless you are logged in',
    commands: {
      create: leaf('create an API key and print it', () => import('./keys/create.ts')),
      ls: leaf('list API keys', () => import('./keys/ls.ts'), ['list']),
      rotate: leaf(
        'replace an API key; the old one stays valid for a while',
        () => import('./keys/rotate.ts'),
      ),
      rm: leaf('revoke an API key', () => import('./keys/rm.ts'), ['delete']),
    },
  },
  account: {
    summary:
      'change the password, log out everywhere, delete the account; asks for your email address and password',
    commands: {
      password: leaf('change the password', () => import('./account/password.ts')),
      'end-sessions': leaf(
        'log out everywhere: revoke all session tokens of the account',
        () => import('./account/end-sessions.ts'),
      ),
      delete: leaf('permanently delete the account and all its data', () => import('./account/delete.ts')),
    },
  },
  openapi: leaf('print the description of the HTTP API', () => import('./openapi.ts')),
  mcp: {
    summary: 'provide sandboxes as tools for agents (Model Context Protocol)',
    commands: {
      serve: leaf('run an MCP server on stdin and stdout', () => import('./mcp/serve.ts')),
      init: leaf("add the server to an MCP client's settings", () => import('./mcp/init.ts')),
      doctor: leaf("test the server in an MCP client's settings", () => import('./mcp/doctor.ts')),
    },
  },
  config: {
    summary: 'show and save the settings of this client',
    commands: {
      'set-url': leaf('save the base address', () => import('./config/set-url.ts')),
      'set-key': leaf('save an API key', () => import('./config/set-key.ts')),
      show: leaf('show each setting and where it comes from', () => import('./config/show.ts')),
    },
  },
  doctor: leaf(
    'check the settings, the connection, the key, the clock and a session',
    () => import('./doctor.ts'),
  ),
  completion: leaf('print a script that completes commands in your shell', () => import('./completion.ts')),
  version: leaf('print the version, as --version does', () => import('./version.ts')),
  __complete: {
    summary: 'called by the completion scripts',
    hidden: true,
    load: () => import('./complete.ts'),
  },
}
