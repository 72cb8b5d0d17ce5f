/** How the terminal is drawn on: in colours, line by line, over the whole screen. */

export const colorChoices = ['auto', 'always', 'never'] as const
export type ColorChoice = (typeof colorChoices)[number]

/** The flag, else FORCE_COLOR, else NO_COLOR, else whether it is a terminal. */
export function wantsColor(stream: NodeJS.WriteStream, choice: ColorChoice = 'auto'): boolean {
  if (choice !== 'auto') return choice === 'always'
  const { FORCE_COLOR: force = '', NO_COLOR: no = '', TERM: terminal } = process.env
  if (force !== '') return force !== '0' && force !== 'false'
  return no === '' && stream.isTTY === true && terminal !== 'dumb'
}

/** Whether lines can be drawn over on stderr. */
export const canAnimate = (): boolean =>
  process.stderr.isTTY === true && process.env.TERM !== 'dumb' && (process.env.CI ?? '') === ''

/** Whether the terminal knows more than lines of text. */
export const canDraw = (): boolean =>
  process.stdin.isTTY === true && process.stdout.isTTY === true && process.env.TERM !== 'dumb'

/** Whether what is on the screen is read aloud, as Ink is told. */
export const isReadAloud = (): boolean => process.env.INK_SCREEN_READER === 'true'
