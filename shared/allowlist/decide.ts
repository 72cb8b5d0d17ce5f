/**
 * Checks commands against an account's allowlist. An entry is a command name, optionally followed by
 * arguments, and allows every command that begins with these words (docs/allowlist.md).
 */
import { affectsPrograms } from './environment-variables.ts'

export type Decision =
  | { allowed: true; entry?: string }
  /**
   * `needs` is the shortest entry that would allow the command. `variable` is the environment variable that
   * caused the refusal.
   */
  | { allowed: false; reason: string; needs?: string; variable?: string }

const sources = {
  request: (name: string) => ({ subject: `The variable ${name} of this request`, remedy: 'Leave it out.' }),
  sandbox: (name: string) => ({
    subject: `The variable ${name} of this sandbox's environment`,
    remedy: 'Create a sandbox without this variable.',
  }),
  secret: (name: string) => ({
    subject: `The secret ${name}`,
    remedy: 'Delete the secret, or give it another name.',
  }),
}

const anyArgument = '*'

/**
 * @param allowlist undefined or null allows every command
 * @param command an argument list, or a string for /bin/sh
 * @param env environment variables, of which only the names are checked
 */
export function decide(
  allowlist: readonly string[] | null | undefined,
  command: string | readonly string[],
  env: Readonly<Record<string, string>> = {},
): Decision {
  if (!allowlist) return { allowed: true }
  const decision = typeof command === 'string' ? decideShellString(allowlist) : decideArgv(allowlist, command)
  return decision.allowed ? (refuseVariables('request', env) ?? decision) : decision
}

/** Returns a refusal if an environment variable could make an allowed command run another program. */
export function refuseVariables(
  source: keyof typeof sources,
  env: Readonly<Record<string, unknown>>,
): Extract<Decision, { allowed: false }> | undefined {
  const variable = Object.keys(env).find(affectsPrograms)
  if (variable === undefined) return undefined
  const { subject, remedy } = sources[source](variable)
  const why =
    "could make an allowed command run another program, which the account's command allowlist forbids."
  return { allowed: false, reason: `${subject} ${why} ${remedy}`, variable }
}

function decideArgv(allowlist: readonly string[], argv: readonly string[]): Decision {
  const entry = allowlist.find((entry) => matches(entry, argv))
  if (entry !== undefined) return { allowed: true, entry }
  const name = argv[0] ?? ''
  const related = allowlist.filter((entry) => wordsOf(entry)[0] === name)
  const reason =
    related.length === 0
      ? `${quoted(name)} is not on the account's command allowlist.`
      : `${quoted(name)} is allowed only with these arguments: ${listed(related)}.`
  return { allowed: false, reason, ...(canBeWord(name) ? { needs: name } : {}) }
}

/**
 * Decides whether a shell string is allowed. The string can run any command, so an entry must permit a shell
 * with an arbitrary script.
 */
function decideShellString(allowlist: readonly string[]): Decision {
  const entry = allowlist.find((entry) => {
    const [name = '', ...rest] = wordsOf(entry)
    return (
      shells.has(baseName(name)) &&
      rest.every((word, at) => word === (at === 0 ? '-c' : anyArgument)) &&
      rest.length <= 2
    )
  })
  if (entry !== undefined) return { allowed: true, entry }
  return {
    allowed: false,
    reason:
      'A shell string requires a shell such as "sh" on the account\'s command allowlist, which contains none. ' +
      'Send the command as a list of arguments instead.',
    needs: 'sh',
  }
}

function matches(entry: string, argv: readonly string[]): boolean {
  const words = wordsOf(entry)
  if (words.length > argv.length) return false
  return words.every((word, at) => word === argv[at] || (at > 0 && word === anyArgument))
}

const wordsOf = (entry: string): string[] => entry.split(' ')

const canBeWord = (text: string): boolean => /^[^\s*\p{C}]{1,200}$/u.test(text)

const quoted = (text: string): string => JSON.stringify(text.length > 100 ? `${text.slice(0, 100)}…` : text)

const listed = (entries: readonly string[]): string =>
  entries.slice(0, 5).map(quoted).join(', ') + (entries.length > 5 ? ', …' : '')

const baseName = (path: string): string => path.slice(path.lastIndexOf('/') + 1)

const namesOf = (text: string): Set<string> => new Set(text.trim().split(/\s+/))

const shells = namesOf('sh bash dash ash zsh ksh mksh fish')
const interpreters = namesOf(
  'python perl ruby node nodejs deno bun php lua luajit java jshell awk gawk mawk nawk tclsh wish expect ' +
    'guile racket Rscript R julia ghci groovy scala swift erl elixir irb ipython octave pwsh',
)
const runners = namesOf(
  'env find xargs busybox toybox nice nohup ionice chrt taskset timeout time setsid stdbuf script watch ' +
    'sudo doas su runuser setpriv chroot unshare nsenter flock strace ltrace gdb parallel entr ssh rsync ' +
    'make gmake cmake ninja just npx pnpx bunx systemd-run start-stop-daemon run-parts ld.so',
)
/**
 * Programs whose options can run other commands. An allowlist entry cannot exclude these options, because any
 * arguments may follow those in the entry.
 */
const runnersByOptions = namesOf(
  'tar zip sed vi vim nvim ex ed emacs nano less more man gcc cc c++ sqlite3 psql mysql openssl tcpdump sort split',
)
const gitByOptions = namesOf(
  'log diff show grep fetch pull push clone ls-remote archive rebase bisect submodule filter-branch difftool ' +
    'mergetool format-patch send-email config',
)
const runnersWhenBare = namesOf('git npm pnpm yarn pip pipx uv cargo go docker podman kubectl crontab at')

export function warningOf(entry: string): string | undefined {
  const [path = '', ...rest] = wordsOf(entry)
  // Removes version numbers: python3.11 and lua5.4 count as python and lua.
  const name = baseName(path)
  const plain = name.replace(/-?\d+(\.\d+)*$/, '')
  const isOf = (names: Set<string>) => names.has(name) || names.has(plain)
  if (isOf(shells))
    return `${quoted(name)} is a shell. It can run any command, so the allowlist has no effect.`
  if (isOf(interpreters)) return `${quoted(name)} is an interpreter, which can run any program.`
  if (isOf(runners) || /^ld-linux|^ld-musl/.test(name)) {
    return `${quoted(name)} starts other commands that are named in its arguments or files.`
  }
  if (isOf(runnersByOptions) || (name === 'git' && gitByOptions.has(rest[0] ?? ''))) {
    const shown = quoted(name === 'git' ? `git ${rest[0]}` : name)
    return `${shown} has options that start other commands or write files. The entry allows these options.`
  }
  if (rest.length === 0 && isOf(runnersWhenBare)) {
    return `${quoted(name)} can start other commands. Add arguments to the entry, as in "${name} ${exampleOf(name)}".`
  }
  return undefined
}

const exampleOf = (name: string): string => ({ git: 'status', npm: 'run test' })[name] ?? '--version'
