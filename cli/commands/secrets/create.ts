/**
 * Sets a secret. Its value is never passed as an argument, because other users can see a process's arguments.
 */
import { limits } from '../../../shared/contract/limits.ts'
import { shellWord } from '../../../shared/contract/shell-words.ts'
import { addSessionOption, defineCommand, type Invocation } from '../../core/command.ts'
import { CliError } from '../../core/errors.ts'
import { decodeUtf8, hasPipedInput, readInput, readLocalFile } from '../../core/input.ts'
import { idOfGiven } from '../../core/session.ts'
import { secretFields } from '../../core/shapes.ts'

interface Options {
  fromFile?: string
  short?: boolean
  yes?: boolean
  session?: string
}

export const define = defineCommand<Options>({
  declare: (command) => {
    addSessionOption(
      command,
      "set the secret only for this session, overriding the account's secret of the same name",
    )
      .argument('<name>', 'the name of the environment variable')
      .option('--from-file <file>', 'a local file that contains the exact value; - is stdin')
      .option('--short', `accept a value of fewer than ${limits.blankedBytes} bytes`)
    // Commander would print an excess argument, which may be the value.
    command.allowExcessArguments().allowUnknownOption()
  },
  notes: `
Without --from-file, the value is read from a pipe, without a trailing newline, or from a prompt without echo.
The value replaces any previous one. A value of fewer than ${limits.blankedBytes} bytes is not redacted from output;
it needs confirmation at a terminal, and --short elsewhere.`,
  examples: [
    'sandlot secrets create API_TOKEN',
    'pass show token | sandlot secrets create API_TOKEN',
    'sandlot secrets create TLS_KEY --from-file key.pem --session sbx_01kb0e6g8xq4r9w2t7v5m3n1ab',
  ],
  fields: secretFields,
  handle: async (invocation) => {
    const { args, options, settings, api, output } = invocation
    requireNameOnly(args)
    await settings.apiKey(await settings.baseUrl())
    const sandbox_id = await idOfGiven(options.session, api)
    const value = await readValue(invocation)
    await confirmShortValue(value, invocation)
    const body = { name: args[0]!, value, sandbox_id }
    const secret = await api.call('createSecret', { body })
    output.result(secret, `${secret.name}\n`)
    output.aside('Commands started from now on receive the secret.')
  },
})

/**
 * @throws {CliError} unless the only argument is a valid name. The message omits any text that might be the
 * secret's value.
 */
function requireNameOnly(args: string[]): void {
  const [name = '', value] = args[0]!.split(/=(.*)/s)
  if (value !== undefined) {
    throw new CliError('usage', 'NAME=VALUE is not accepted, because other users could see the value.', {
      hint: `\`sandlot secrets create ${shellWord(name)}\` prompts for the value, or reads it from a pipe or from --from-file.`,
    })
  }
  // Checked before the user is prompted for the value.
  if (!/^[A-Za-z_][A-Za-z0-9_]*$/.test(name)) {
    throw new CliError('usage', `<name> ${shellWord(name)} must be a letter or _, then letters, digits or _`)
  }
  if (args.length === 1) return
  throw new CliError('usage', 'This command accepts only a name and options.', {
    hint: 'The value is read from stdin, from --from-file or from a prompt.',
  })
}

/** Asks for confirmation if the value of a secret is too short to be redacted. */
async function confirmShortValue(value: string, { options, ask }: Invocation<Options>): Promise<void> {
  const bytes = Buffer.byteLength(value)
  // The service rejects an empty value.
  if (options.short || bytes === 0 || bytes >= limits.blankedBytes) return
  const fact = `A value of fewer than ${limits.blankedBytes} bytes is not redacted from output.`
  if (!options.yes && !ask.isPossible())
    throw new CliError('usage', `${fact} Nothing was set.`, { hint: 'Use --short to set the secret anyway.' })
  await ask.confirm(`${fact} Set it anyway?`, 'Nothing was set.')
}

async function readValue({ options: { fromFile }, ask, output }: Invocation<Options>): Promise<string> {
  if (fromFile === undefined && !hasPipedInput())
    return ask.hidden('Value', '--from-file, or pipe the value to stdin')
  const isFile = fromFile !== undefined && fromFile !== '-'
  const text = decodeUtf8(isFile ? await readLocalFile(fromFile) : await readInput(output.note))
  if (text === undefined) throw new CliError('usage', "The secret's value is not UTF-8 text.")
  return fromFile === undefined ? text.replace(/\r?\n$/, '') : text
}
