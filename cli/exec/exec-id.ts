/** The command that `sandlot logs`, `kill` and `attach` are about. */
import { CliError } from '../core/errors.ts'
import { execIdHint } from '../core/problem.ts'

/** @throws {CliError} `exec_not_found` for a word that is no id */
export function readExecId([id = '']: string[]): string {
  if (/^exec_[0-9a-z]{26}$/.test(id)) return id
  throw new CliError('exec_not_found', `${id} is not the id of a command.`, { hint: execIdHint })
}
