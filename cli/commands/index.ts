/** Every command: its name, its line in the help, and how to load it. */
import type { Define } from '../command.ts'

export interface Leaf {
  summary: string
  load(): Promise<{ define: Define }>
}
interface Group {
  summary: string
  commands: Branch
}
export interface Branch {
  [name: string]: Leaf | Group
}

export const commands: Branch = {
  signup: { summary: 'create an account and save an API key', load: () => import('./signup.ts') },
  session: {
    summary: 'sandboxes: create, look at, list and destroy them',
    commands: {
      create: { summary: 'create a session and print its id', load: () => import('./session/create.ts') },
      get: { summary: 'show a session', load: () => import('./session/get.ts') },
      ls: { summary: 'list sessions', load: () => import('./session/ls.ts') },
      rm: { summary: 'destroy sessions', load: () => import('./session/rm.ts') },
    },
  },
  exec: { summary: 'run a command in a session', load: () => import('./exec.ts') },
  files: {
    summary: 'files of a session',
    commands: {
      view: { summary: 'print a file, or some of its lines', load: () => import('./files/view.ts') },
      create: { summary: 'write a file whole', load: () => import('./files/create.ts') },
    },
  },
  whoami: { summary: 'the account, its usage and its limits', load: () => import('./whoami.ts') },
  keys: {
    summary: 'API keys; asks for email and password on every run',
    commands: {
      ls: { summary: 'list API keys', load: () => import('./keys/ls.ts') },
      rm: { summary: 'revoke an API key', load: () => import('./keys/rm.ts') },
    },
  },
  config: {
    summary: 'the settings of this client',
    commands: {
      'set-url': { summary: 'save the base address', load: () => import('./config/set-url.ts') },
      'set-key': { summary: 'save an API key', load: () => import('./config/set-key.ts') },
      show: { summary: 'show each setting and where it comes from', load: () => import('./config/show.ts') },
    },
  },
}
