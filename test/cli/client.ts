/** Runs the built client as a user does: a process of its own, with a home of its own. */
import { type ChildProcess, spawn } from 'node:child_process'
import { mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'

export const clientPath = join(import.meta.dirname, '..', '..', 'cli', 'dist', 'main.js')

export interface Ran {
  code: number | null
  signal: NodeJS.Signals | null
  stdout: string
  stderr: string
  /** stdout as bytes */
  bytes: Buffer
  /** stdout as JSON; throws when it is not exactly one document. */
  // biome-ignore lint/suspicious/noExplicitAny: tests look into whatever came
  json(): any
}

export interface RunOptions {
  env?: Record<string, string>
  /** Piped into stdin, which is /dev/null without. */
  input?: string | Uint8Array
  /** Leaves stdin an open pipe, for `onStart` to write to and end. */
  openInput?: boolean
  /** The folder it runs in, the test's own without. */
  cwd?: string
  /** Called with the process as soon as there is one. */
  onStart?: (child: ChildProcess) => void
}

/** A home folder, and the client in it. */
export class Home implements Disposable {
  readonly folder = mkdtempSync(join(tmpdir(), 'sandlot-cli-'))
  readonly configFolder = join(this.folder, 'config', 'sandlot')
  readonly configFile = join(this.configFolder, 'config.toml')

  /** What every process in this home gets; nothing of the test's own environment but PATH. */
  environment(more: Record<string, string> = {}): Record<string, string> {
    return {
      PATH: process.env.PATH ?? '',
      HOME: this.folder,
      XDG_CONFIG_HOME: join(this.folder, 'config'),
      ...more,
    }
  }

  /** The environment that sends the saved key to another address, where it would not go by itself. */
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
    // A client that refuses before it reads closes the pipe under us.
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
