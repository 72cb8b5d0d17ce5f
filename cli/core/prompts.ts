/** A separate module, so that the bundle contains only these prompts. */
export { confirm, input, password } from '@inquirer/prompts'
