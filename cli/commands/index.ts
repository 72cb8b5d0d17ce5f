import type { Define } from '../core/command.ts'

interface Leaf {
  summary: string
  aliases?: string[]
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

export const commands: Branch = {
  signup: { summary: 'create an account and save an API key', load: () => import('./signup.ts') },
  login: {
    summary: 'log in for 15 minutes, and save an API key if none is saved',
    load: () => import('./login.ts'),
  },
  logout: { summary: 'forget the login and the saved API key', load: () => import('./logout.ts') },
  session: {
    summary: 'create, show, list, select and destroy sandboxes (sessions)',
    commands: {
      create: { summary: 'create a session and print its id', load: () => import('./session/create.ts') },
      get: { summary: 'show a session', load: () => import('./session/get.ts') },
      ls: { summary: 'list sessions', aliases: ['list'], load: () => import('./session/ls.ts') },
      use: {
        summary: 'set the current session',
        load: () => import('./session/use.ts'),
      },
      update: {
        summary: "change a session's name, labels or lifetime",
        load: () => import('./session/update.ts'),
      },
      reset: {
        summary: 'end all processes in a session and keep its files',
        load: () => import('./session/reset.ts'),
      },
      rm: { summary: 'destroy sessions', aliases: ['delete'], load: () => import('./session/rm.ts') },
    },
  },
  ls: { summary: 'list sessions, as `session ls` does', load: () => import('./session/ls.ts') },
  rm: { summary: 'destroy sessions, as `session rm` does', load: () => import('./session/rm.ts') },
  exec: { summary: 'run a command in a session', load: () => import('./exec.ts') },
  ps: { summary: "list a session's commands, newest first", load: () => import('./ps.ts') },
  logs: { summary: 'print the output of a command', load: () => import('./logs.ts') },
  kill: { summary: 'send a signal to a command', load: () => import('./kill.ts') },
  attach: {
    summary: 'reconnect to a command that was started with -t',
    load: () => import('./attach.ts'),
  },
  files: {
    summary: 'work with the files of a session',
    commands: {
      view: { summary: 'print a file, or some of its lines', load: () => import('./files/view.ts') },
      create: { summary: 'write a file', load: () => import('./files/create.ts') },
      edit: {
        summary: 'replace text in a file, or open it in an editor',
        load: () => import('./files/edit.ts'),
      },
      ls: { summary: 'list a folder', aliases: ['list'], load: () => import('./files/ls.ts') },
      glob: { summary: 'find paths that match a pattern', load: () => import('./files/glob.ts') },
      grep: { summary: 'find lines that match a pattern', load: () => import('./files/grep.ts') },
      get: { summary: 'download a file of any size', load: () => import('./files/get.ts') },
      put: { summary: 'upload a file of any size', load: () => import('./files/put.ts') },
      stat: {
        summary: 'show the type, mode, owner, size and time of a path',
        load: () => import('./files/stat.ts'),
      },
      watch: {
        summary: 'print the changes in a folder as they happen',
        load: () => import('./files/watch.ts'),
      },
      mkdir: { summary: 'create a folder', load: () => import('./files/mkdir.ts') },
      mv: { summary: 'move or rename a file or folder', load: () => import('./files/mv.ts') },
      rm: { summary: 'remove a file or folder', load: () => import('./files/rm.ts') },
      chmod: { summary: 'set the permissions of a file or folder', load: () => import('./files/chmod.ts') },
    },
  },
  cp: { summary: 'copy files and folders to or from a session', load: () => import('./cp.ts') },
  forward: {
    summary: 'forward local ports to ports in a session',
    load: () => import('./forward.ts'),
  },
  allowlist: {
    summary: "manage the commands that may run in the account's sessions",
    commands: {
      get: { summary: 'print the list', load: () => import('./allowlist/get.ts') },
      set: { summary: 'replace the list', load: () => import('./allowlist/set.ts') },
      clear: {
        summary: 'remove the list, so that every command may run',
        load: () => import('./allowlist/clear.ts'),
      },
      check: {
        summary: 'check whether a command would be allowed',
        load: () => import('./allowlist/check.ts'),
      },
    },
  },
  secrets: {
    summary: 'manage environment variables that are stored encrypted and redacted from output',
    commands: {
      create: { summary: 'set a secret', load: () => import('./secrets/create.ts') },
      ls: { summary: 'list the names of secrets', aliases: ['list'], load: () => import('./secrets/ls.ts') },
      rm: { summary: 'delete a secret', aliases: ['delete'], load: () => import('./secrets/rm.ts') },
    },
  },
  whoami: { summary: 'show the account, its usage and its limits', load: () => import('./whoami.ts') },
  keys: {
    summary: 'manage API keys; asks for your email address and password unless you are logged in',
    commands: {
      create: { summary: 'create an API key and print it', load: () => import('./keys/create.ts') },
      ls: { summary: 'list API keys', aliases: ['list'], load: () => import('./keys/ls.ts') },
      rotate: {
        summary: 'replace an API key; the old one stays valid for a while',
        load: () => import('./keys/rotate.ts'),
      },
      rm: { summary: 'revoke an API key', aliases: ['delete'], load: () => import('./keys/rm.ts') },
    },
  },
  account: {
    summary:
      'change the password, log out everywhere, delete the account; asks for your email address and password',
    commands: {
      password: { summary: 'change the password', load: () => import('./account/password.ts') },
      'end-sessions': {
        summary: 'log out everywhere: revoke all session tokens of the account',
        load: () => import('./account/end-sessions.ts'),
      },
      delete: {
        summary: 'permanently delete the account and all its data',
        load: () => import('./account/delete.ts'),
      },
    },
  },
  openapi: { summary: 'print the description of the HTTP API', load: () => import('./openapi.ts') },
  mcp: {
    summary: 'provide sandboxes as tools for agents (Model Context Protocol)',
    commands: {
      serve: { summary: 'run an MCP server on stdin and stdout', load: () => import('./mcp/serve.ts') },
      init: {
        summary: "add the server to an MCP client's settings",
        load: () => import('./mcp/init.ts'),
      },
      doctor: {
        summary: "test the server in an MCP client's settings",
        load: () => import('./mcp/doctor.ts'),
      },
    },
  },
  config: {
    summary: 'show and save the settings of this client',
    commands: {
      'set-url': { summary: 'save the base address', load: () => import('./config/set-url.ts') },
      'set-key': { summary: 'save an API key', load: () => import('./config/set-key.ts') },
      show: { summary: 'show each setting and where it comes from', load: () => import('./config/show.ts') },
    },
  },
  doctor: {
    summary: 'check the settings, the connection, the key, the clock and a session',
    load: () => import('./doctor.ts'),
  },
  completion: {
    summary: 'print a script that completes commands in your shell',
    load: () => import('./completion.ts'),
  },
  version: { summary: 'print the version, as --version does', load: () => import('./version.ts') },
  __complete: {
    summary: 'called by the completion scripts',
    hidden: true,
    load: () => import('./complete.ts'),
  },
}
