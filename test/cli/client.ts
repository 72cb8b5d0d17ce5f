/** Runs the built client as a separate process with a temporary home. */
import { type ChildProcess, spawn } from 'node:child_process'
import { mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { openTerminal, type Terminal } from './terminal.ts'

export const clientPath = join(import.meta.dirname, '..', '..', 'cli', 'dist', 'main.js')

/** Settings for a service that accepts any key, such as a test's own HTTP server. */
export const settingsFor = (url: string, more: Record<string, string> = {}): Record<string, string> => ({
  SANDLOT_URL: url,
  SANDLOT_API_KEY: 'sandlot_live_secret',
  SANDLOT_SESSION: 'sbx_a',
  ...more,
})

export interface Ran {
  code: number | null
  signal: NodeJS.Signals | null
  stdout: string
  stderr: string
  bytes: Buffer
  /** @throws {Error} if stdout is not exactly one JSON document */
  // biome-ignore lint/suspicious/noExplicitAny: tests read any member of the JSON
  json(): any
}

export interface RunOptions {
  env?: Record<string, string>
  /** Sent to stdin. Default: /dev/null. */
  input?: string | Uint8Array
  /** Keeps stdin open. `onStart` writes to stdin and closes it. */
  openInput?: boolean
  /** Default: the working directory of the test. */
  cwd?: string
  onStart?: (child: ChildProcess) => void
}

export class Home implements Disposable {
  readonly folder = mkdtempSync(join(tmpdir(), 'sandlot-cli-'))
  readonly configFolder = join(this.folder, 'config', 'sandlot')
  readonly configFile = join(this.configFolder, 'config.toml')

  /** Inherits only PATH from the test. */
  environment(more: Record<string, string> = {}): Record<string, string> {
    return {
      PATH: process.env.PATH ?? '',
      HOME: this.folder,
      XDG_CONFIG_HOME: join(this.folder, 'config'),
      ...more,
    }
  }

  /** Allows the saved key to be sent to another address, which the client otherwise rejects. */
  through(url: string): Record<string, string> {
    const [, key] = /^api_key = "(.*)"$/m.exec(readFileSync(this.configFile, 'utf8'))!
    return { SANDLOT_URL: url, SANDLOT_API_KEY: key! }
  }

  writeConfig(text: string): void {
    mkdirSync(this.configFolder, { recursive: true })
    writeFileSync(this.configFile, text, { mode: 0o600 })
  }

  run(args: string[], options: RunOptions = {}): Promise<Ran> {
    return runProcess(process.execPath, [clientPath, ...args], this.environment(options.env), options)
  }

  /** Runs the client on a terminal. */
  open(args: string[], env: Record<string, string> = {}): Terminal {
    return openTerminal([process.execPath, clientPath, ...args], this.environment(env))
  }

  [Symbol.dispose](): void {
    rmSync(this.folder, { recursive: true, force: true })
  }
}

export function runProcess(
  file: string,
  args: string[],
  env: Record<string, string>,
  { input, openInput, onStart, cwd }: RunOptions = {},
): Promise<Ran> {
  return new Promise((resolve, reject) => {
    const child = spawn(file, args, {
      env,
      cwd,
      stdio: [input === undefined && !openInput ? 'ignore' : 'pipe', 'pipe', 'pipe'],
    })
    const stdout: Buffer[] = []
    const stderr: Buffer[] = []
    child.stdout?.on('data', (chunk) => stdout.push(chunk))
    child.stderr?.on('data', (chunk) => stderr.push(chunk))
    // EPIPE occurs if the client exits before it reads stdin.
    child.stdin?.on('error', () => {})
    if (input !== undefined) child.stdin?.end(input)
    onStart?.(child)
    child.on('error', reject)
    child.on('close', (code, signal) => {
      const bytes = Buffer.concat(stdout)
      const text = bytes.toString()
      resolve({
        code,
        signal,
        bytes,
        stdout: text,
        stderr: Buffer.concat(stderr).toString(),
        json: () => JSON.parse(text),
      })
    })
  })
}
