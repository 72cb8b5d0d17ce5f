/** Texts of `sandlot help TOPIC`. */
import { variables } from './settings.ts'

export const topics: Record<string, () => string> = {
  'exit-codes': () => exitCodes,
  settings: () => settings,
}

const exitCodes = `Exit codes

    0  done
    1  failed; from grep and allowlist check: no match, or not allowed
    2  wrong usage: an option, an argument, a setting
    3  no such thing: a session, a file, a key
    4  credentials: missing, wrong, of the wrong kind, or the account is suspended
    5  ambiguous or conflicting: several sessions, a file that is there or has changed
    6  a quota: too many sessions at once, the hours of the month
    7  a rate limit; the error says when to try again
    8  network or server
    9  not everything was printed or copied: from files ls, glob, grep, files view --json, and cp
  130  interrupted

sandlot exec, attach and session create --rm exit with the command's own code, except for

  124  it timed out
  125  the client or the service failed, or the usage was wrong: the command never ran, or its end is not known
  126  the command could not be run
  127  there is no such command
  128+n  signal n ended it

With --json an error gives its code as a word, and the exit code as exit_code:

  {"error":{"code":"no_session","message":"There is no active session.","hint":"…","exit_code":3}}
`

const settings = `Settings

A setting comes from the first of these that has it:

  1. a flag: --url, --api-key, --session
  2. the profile that --profile names
  3. the environment: SANDLOT_URL, SANDLOT_API_KEY, SANDLOT_SESSION
  4. the file: the profile that SANDLOT_PROFILE names, or else the top of the file

A saved key belongs to the address that it was saved for: scheme, host and port. Another address, whether of --url,
SANDLOT_URL or the .env of a project, gets the key of --api-key, of SANDLOT_API_KEY or of the profile that has this address,
or none. sandlot doctor says which key goes where.

A session that none of these says is the current one, which sandlot session use saves in the file, while it is
active; else the only one that is active.

The file is config.toml in $XDG_CONFIG_HOME/sandlot, or in ~/.config/sandlot:

  base_url = "https://sandlot.example"
  api_key = "sandlot_live_…"

  [profiles.work]
  base_url = "https://sandlot.work.example"
  api_key = "sandlot_live_…"

config set-url leaves a saved key with the address that it was for, in api_key_url.

signup, login, logout, session use, config set-url and config set-key write the file; with --profile NAME they write into that
profile. login keeps its token there for 15 minutes (token, token_expires_at).
A profile takes nothing from the top of the file. sandlot config show tells which settings are in use, and
where each comes from.

Environment

${Object.entries(variables)
  .map(([name, meaning]) => `  ${name.padEnd(20)} ${meaning}`)
  .join('\n')}
`
