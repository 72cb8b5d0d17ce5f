import { Argument } from 'commander'
import { type Shell, scripts, shells } from '../completion/scripts.ts'
import { defineCommand } from '../core/command.ts'

export const define = defineCommand({
  declare: (command) => command.addArgument(new Argument('<shell>', 'the shell').choices(shells)),
  notes: `
To install it for all new shells:
  bash  echo 'source <(sandlot completion bash)' >> ~/.bashrc
  zsh   echo 'source <(sandlot completion zsh)' >> ~/.zshrc     (after compinit)
  fish  sandlot completion fish > ~/.config/fish/completions/sandlot.fish

Session ids and paths come from the service, with a timeout of 2 s.`,
  examples: ['source <(sandlot completion bash)'],
  handle: async ({ args, output }) => {
    const shell = args[0] as Shell
    output.result({ shell, script: scripts[shell] }, scripts[shell])
  },
})
