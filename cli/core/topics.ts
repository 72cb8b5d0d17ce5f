import { variables } from './settings.ts'

export const topics: Record<string, () => string> = {
  'exit-codes': () => exitCodes,
  settings: () => settings,
}

const exitCodes = `Exit codes

    0  done
    1  failed; no match (files grep), or not allowed (allowlist check)
    2  wrong usage: an option, an argument or a setting
    3  not found: a session, a file, a key
    4  credentials: missing, wrong, of the wrong kind, or the account is suspended
    5  ambiguous or conflicting: several sessions, a file that already exists or has changed
    6  quota: too many concurrent sessions, or the monthly hours are used up
    7  rate limit; the error shows when to try again
    8  network or server error
    9  incomplete: not everything was printed or copied (files ls, glob, grep, view --json, and cp)
  130  interrupted

sandlot exec, attach and session create --rm exit with the command's exit code, except for

  124  the command timed out
  125  the client or the service failed, or the usage was wrong: the command never ran, or its exit status is unknown
  126  the command could not be run
  127  the command was not found
  128+n  the command was terminated by signal n

With --json, an error contains its error code as code and the exit code as exit_code:

  {"error":{"code":"no_session","message":"There is no active session.","hint":"…","exit_code":3}}
`

const settings = `Settings

Settings are read from these sources, in order of precedence:

  1. a flag: --url, --api-key, --session
  2. the profile named by --profile
  3. the environment: SANDLOT_URL, SANDLOT_API_KEY, SANDLOT_SESSION
  4. the file: the profile named by SANDLOT_PROFILE, or the top level of the file

A saved key is sent only to the address saved with it: scheme, host and port. If --url, SANDLOT_URL or a project's .env
file sets another address, the client uses the key from --api-key or SANDLOT_API_KEY, or from the only profile with that
address. Otherwise, the client sends no key. sandlot doctor shows the address of each key.

If no source sets the session, commands use the session saved by sandlot session use. If that session is no longer
active, they use the only active session.

The file is $XDG_CONFIG_HOME/sandlot/config.toml, by default ~/.config/sandlot/config.toml:

  base_url = "https://sandlot.example"
  api_key = "sandlot_live_…"

  [profiles.work]
  base_url = "https://sandlot.work.example"
  api_key = "sandlot_live_…"

config set-url saves the address of an existing key as api_key_url.

signup, login, logout, session use, config set-url and config set-key write the file; with --profile NAME they write
that profile. login also saves a token that is valid for 15 minutes (token, token_expires_at).
A profile inherits nothing from the top level of the file. sandlot config show shows which settings are in use and where
each comes from.

Environment

${Object.entries(variables)
  .map(([name, meaning]) => `  ${name.padEnd(20)} ${meaning}`)
  .join('\n')}
`
