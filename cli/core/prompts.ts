/** Exports only the prompts that the client uses, so that the bundle omits the others. */
export { confirm, input, password } from '@inquirer/prompts'
