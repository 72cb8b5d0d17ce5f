/**
 * A terminal for a process, made by `script` of util-linux, because Node has no call for it. `script` carries input and
 * output; `stty` sets the size on the terminal itself.
 */
import { spawn } from 'node:child_process'
import { accessSync, constants } from 'node:fs'
import { delimiter, join } from 'node:path'

/**
 * @param request the argv, and the size that its terminal starts with
 * @returns the command line to run in place of the argv. Its file 3 must be a pipe: `follow` reads from it which
 *   terminal it is, and returns a function that changes the size
 */
export function onTerminal({ argv, tty }, env) {
  const missing = ['script', 'stty', 'tty'].find((name) => !isOnPath(name, env.PATH))
  if (missing) return { refusal: new Error(`no terminal: there is no program ${missing} on this machine`) }
  // The shell leads the terminal's session, then becomes the process.
  // With iutf8 a backspace erases a whole character. A stty that does not know it refuses all of the line.
  const set = `stty iutf8 echo ${sizeWords(tty)} 2>/dev/null || stty echo ${sizeWords(tty)}`
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
    // One after the other, so that the last size stays.
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

/** The kernel signals the processes in its foreground (SIGWINCH). */
function setSize(path, size, env) {
  return new Promise((resolve) => {
    const stty = spawn('stty', ['-F', path, ...sizeWords(size).split(' ')], { stdio: 'ignore', env })
    stty.on('error', resolve).on('exit', resolve)
  })
}

const sizeWords = ({ rows, columns }) => `rows ${Number(rows)} columns ${Number(columns)}`
const quote = (word) => `'${word.replaceAll("'", "'\\''")}'`
