/** `sandlot secrets create NAME`: sets a secret. The value is never an argument: others could see it there. */
import { addSessionOption, defineCommand, type Invocation } from '../../core/command.ts'
import { CliError } from '../../core/errors.ts'
import { decodeUtf8, hasPipedInput, readInput, readLocalFile } from '../../core/input.ts'
import { idOfGiven } from '../../core/session.ts'
import { secretFields } from '../../core/shapes.ts'

interface Options {
  fromFile?: string
  session?: string
}

export const define = defineCommand<Options>({
  declare: (command) => {
    addSessionOption(command, "for this session alone, over the account's of the same name")
      .argument('<name>', 'the name of the environment variable')
      .option('--from-file <file>', 'a file of this machine that holds the value, byte for byte; - is stdin')
    // A further word may be the value, and commander would print it.
    command.allowExcessArguments().allowUnknownOption()
  },
  notes: `
Without --from-file it takes the value from a pipe, less a newline at its end, or asks for it without showing it.
The value replaces the one from before.`,
  examples: [
    'sandlot secrets create API_TOKEN',
    'pass show token | sandlot secrets create API_TOKEN',
    'sandlot secrets create TLS_KEY --from-file key.pem --session sbx_01kb0e6g8xq4r9w2t7v5m3n1ab',
  ],
  fields: secretFields,
  handle: async (invocation) => {
    const { args, options, settings, api, output } = invocation
    mustBeNameAlone(args)
    await settings.apiKey(await settings.baseUrl())
    const sandbox_id = await idOfGiven(options.session, api)
    const body = { name: args[0]!, value: await readValue(invocation), sandbox_id }
    const secret = await api.call('createSecret', { body })
    output.result(secret, `${secret.name}\n`)
    output.aside('Commands that start from now on have it.')
  },
})

/** @throws {CliError} `usage`, without showing the further words */
function mustBeNameAlone(args: string[]): void {
  if (args.length === 1) return
  throw new CliError('usage', 'There is more on the line than a name and the options of this command.', {
    hint: 'The value is no argument: it comes from stdin, from --from-file or from a prompt.',
  })
}

async function readValue({ options: { fromFile }, ask, output }: Invocation<Options>): Promise<string> {
  if (fromFile === undefined && !hasPipedInput()) return ask.hidden('Value', '--from-file, or pipe it in')
  const isFile = fromFile !== undefined && fromFile !== '-'
  const text = decodeUtf8(isFile ? await readLocalFile(fromFile) : await readInput(output.note))
  if (text === undefined) throw new CliError('usage', 'The value is not UTF-8 text.')
  return fromFile === undefined ? text.replace(/\r?\n$/, '') : text
}
