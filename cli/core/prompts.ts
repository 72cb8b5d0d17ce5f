/** Re-exports only the prompts that the client uses, so that the bundle does not contain the others. */
export { confirm, input, password } from '@inquirer/prompts'
