/** Creates terminals with `script` from util-linux and resizes them with `stty`. Node has no API for this. */
import { spawn } from 'node:child_process'
import { accessSync, constants } from 'node:fs'
import { delimiter, join } from 'node:path'

/**
 * Prepares a process to run in a terminal. The caller must pass a pipe to the process as file descriptor 3.
 * @param request the process's argv and the terminal's initial size
 * @returns `argv` and `env` for the process, and `follow`, which takes the pipe's other end and returns a
 *   function that resizes the terminal; or only an error in `refusal` if a required program is missing
 */
export function onTerminal({ argv, tty }, env) {
  const missing = ['script', 'stty', 'tty'].find((name) => !isOnPath(name, env.PATH))
  if (missing)
    return { refusal: new Error(`no terminal: the program ${missing} is not installed on this machine`) }
  // The shell leads the terminal's session, then becomes the process. With `iutf8`, a backspace erases a
  // complete UTF-8 character. A `stty` without `iutf8` support rejects the entire command.
  const set = `stty iutf8 echo ${sizeArgs(tty)} 2>/dev/null || stty echo ${sizeArgs(tty)}`
  const inside = `tty >&3; exec 3>&-; ${set}; exec ${argv.map(quote).join(' ')}`
  return {
    argv: ['script', '-qfec', inside, '/dev/null'],
    env: { TERM: 'xterm', ...env, SHELL: '/bin/sh' },
    follow,
  }

  function follow(pipe) {
    const path = new Promise((resolve) => {
      let text = ''
      pipe.on('data', (chunk) => {
        text += chunk
        if (text.endsWith('\n')) resolve(text.trim())
      })
      pipe.on('error', () => {})
    })
    // Sizes are set one after the other, so that the last one takes effect.
    let last = Promise.resolve()
    return (size) => {
      last = last.then(async () => setSize(await path, size, env))
    }
  }
}

const isOnPath = (name, path) =>
  path.split(delimiter).some((folder) => {
    try {
      accessSync(join(folder, name), constants.X_OK)
      return true
    } catch {
      return false
    }
  })

/** Sets a terminal's size. The kernel then sends SIGWINCH to the foreground processes. */
function setSize(path, size, env) {
  return new Promise((resolve) => {
    const stty = spawn('stty', ['-F', path, ...sizeArgs(size).split(' ')], { stdio: 'ignore', env })
    stty.on('error', resolve).on('exit', resolve)
  })
}

const sizeArgs = ({ rows, columns }) => `rows ${Number(rows)} columns ${Number(columns)}`
const quote = (word) => `'${word.replaceAll("'", "'\\''")}'`
