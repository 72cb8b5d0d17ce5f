/** What command files are made of: the options they share, and the bridge from commander to a handler. */
import type { Command } from 'commander'
import { type Api, createApi } from './api.ts'
import { createOutput, type Output } from './output.ts'
import { createSettings, type Settings } from './settings.ts'

/** A command file exports one: it adds arguments, options, help and action to its command. */
export type Define = (command: Command, exitWith: (code: number) => void) => void

export interface Invocation<Options> {
  /** Operands as typed. */
  args: string[]
  options: Options
  settings: Settings
  api: Api
  output: Output
}

export interface CommonOptions {
  json?: boolean
  url?: string
  apiKey?: string
  session?: string
}

export function addCommonOptions(command: Command): void {
  command
    .option('--json', 'print one JSON object, errors included')
    .option('--url <url>', 'base address of the service')
    .option('--api-key <key>', 'API key; other users of the machine can see it, SANDLOT_API_KEY they cannot')
}

export const addSessionOption = (
  command: Command,
  meaning = 'the session; by default the only one that is active',
): Command => command.option('-s, --session <id>', meaning)

/** Makes `handle` the action of a command. Options may stand before the command's name too. */
export function handleWith<Options extends object>(
  command: Command,
  handle: (invocation: Invocation<Options>) => Promise<void>,
): void {
  command.action(async () => {
    const options = optionsOf<Options & CommonOptions>(command)
    const settings = createSettings(options)
    await handle({
      args: command.args,
      options,
      settings,
      api: createApi(settings),
      output: createOutput(options.json === true),
    })
  })
}

/** As given to the command itself, else before its name. */
export const optionsOf = <Options extends object>(command: Command): Options => ({
  ...command.parent?.parent?.opts(),
  ...command.parent?.opts(),
  ...command.opts<Options>(),
})

/** For options that may be given several times. */
export const collect = (value: string, before: string[] = []): string[] => [...before, value]
