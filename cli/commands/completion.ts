import { Argument } from 'commander'
import { type Shell, scripts, shells } from '../completion/scripts.ts'
import { defineCommand } from '../core/command.ts'

export const define = defineCommand({
  declare: (command) => command.addArgument(new Argument('<shell>', 'the shell it is for').choices(shells)),
  notes: `
For every new shell, once:
  bash  echo 'source <(sandlot completion bash)' >> ~/.bashrc
  zsh   echo 'source <(sandlot completion zsh)' >> ~/.zshrc     (after compinit)
  fish  sandlot completion fish > ~/.config/fish/completions/sandlot.fish

Session ids and paths come from the service, which has 2 s to answer.`,
  examples: ['source <(sandlot completion bash)'],
  handle: async ({ args, output }) => {
    const shell = args[0] as Shell
    output.result({ shell, script: scripts[shell] }, scripts[shell])
  },
})
