/** The value is never an argument, which other users could see. */
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
    addSessionOption(command, "for this session alone, over the account's of the same name")
      .argument('<name>', 'the name of the environment variable')
      .option('--from-file <file>', 'a file of this machine that holds the value, byte for byte; - is stdin')
      .option('--short', `set it even if it has fewer than ${limits.blankedBytes} bytes`)
    // Commander would print a further word, which may be the value.
    command.allowExcessArguments().allowUnknownOption()
  },
  notes: `
Without --from-file it takes the value from a pipe, less a newline at its end, or asks for it without showing it.
The value replaces the one from before. One with fewer than ${limits.blankedBytes} bytes is not blanked out of output: at a
terminal it is asked for, and elsewhere it needs --short.`,
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
    await confirmIntent(value, invocation)
    const body = { name: args[0]!, value, sandbox_id }
    const secret = await api.call('createSecret', { body })
    output.result(secret, `${secret.name}\n`)
    output.aside('Commands that start from now on have it.')
  },
})

/** Does not print further words. @throws {CliError} `usage` */
function requireNameOnly(args: string[]): void {
  const [name = '', value] = args[0]!.split(/=(.*)/s)
  if (value !== undefined) {
    throw new CliError(
      'usage',
      'A name and its value are not given as NAME=VALUE: others could see the value.',
      {
        hint: `\`sandlot secrets create ${shellWord(name)}\` asks for the value, or takes it from a pipe or from --from-file.`,
      },
    )
  }
  // Checked before the value is typed.
  if (!isSecretName(name)) {
    throw new CliError('usage', `<name> ${shellWord(name)} must be a letter or _, then letters, digits or _`)
  }
  if (args.length === 1) return
  throw new CliError('usage', 'There is more on the line than a name and the options of this command.', {
    hint: 'The value is no argument: it comes from stdin, from --from-file or from a prompt.',
  })
}

/** Same rule as the service. */
const isSecretName = (name: string): boolean => /^[A-Za-z_][A-Za-z0-9_]*$/.test(name)

/** @throws {CliError} for a value that output would not redact, unless confirmed */
async function confirmIntent(value: string, { options, ask }: Invocation<Options>): Promise<void> {
  const bytes = Buffer.byteLength(value)
  // The service rejects an empty value.
  if (options.short || bytes === 0 || bytes >= limits.blankedBytes) return
  const words = `The value has fewer than ${limits.blankedBytes} bytes, so it is not blanked out of output.`
  if (!options.yes && !ask.isPossible())
    throw new CliError('usage', `${words} Nothing was set.`, { hint: '--short sets it all the same.' })
  const question = `Under ${limits.blankedBytes} bytes it is not blanked out of output. Set it all the same?`
  await ask.confirm(question, 'Nothing was set.')
}

async function readValue({ options: { fromFile }, ask, output }: Invocation<Options>): Promise<string> {
  if (fromFile === undefined && !hasPipedInput()) return ask.hidden('Value', '--from-file, or pipe it in')
  const isFile = fromFile !== undefined && fromFile !== '-'
  const text = decodeUtf8(isFile ? await readLocalFile(fromFile) : await readInput(output.note))
  if (text === undefined) throw new CliError('usage', 'The value is not UTF-8 text.')
  return fromFile === undefined ? text.replace(/\r?\n$/, '') : text
}
