/** The command that `sandlot exec logs` and `kill` are about. */
import { CliError } from '../core/errors.ts'
import { execIdHint } from '../core/problem.ts'

/**
 * @param words what was typed behind the subcommand, without its options
 * @throws {CliError} `usage` for anything but one word, `exec_not_found` for one that is no id
 */
export function readExecId(words: string[], subcommand: string): string {
  const [id, ...more] = words
  if (id === undefined || more.length > 0 || id.startsWith('-')) {
    const wrong = words.find((word) => word.startsWith('-'))
    const message = wrong === undefined ? 'Give the id of one command.' : `There is no option ${wrong} here.`
    throw new CliError('usage', message, {
      hint: `\`sandlot exec ${subcommand} --help\` shows how; \`sandlot exec -- ${subcommand} …\` runs the program.`,
    })
  }
  if (/^exec_[0-9a-z]{26}$/.test(id)) return id
  throw new CliError('exec_not_found', `${id} is not the id of a command.`, { hint: execIdHint })
}
