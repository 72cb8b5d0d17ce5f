/** The questions in use, so that a bundle holds no others. */
export { confirm, input, password } from '@inquirer/prompts'
