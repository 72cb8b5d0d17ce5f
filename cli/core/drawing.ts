export const colorChoices = ['auto', 'always', 'never'] as const
export type ColorChoice = (typeof colorChoices)[number]

/** Returns whether to use colors. --color overrides FORCE_COLOR, which overrides NO_COLOR. */
export function wantsColor(stream: NodeJS.WriteStream, choice: ColorChoice = 'auto'): boolean {
  if (choice !== 'auto') return choice === 'always'
  const { FORCE_COLOR: force = '', NO_COLOR: no = '', TERM: terminal } = process.env
  if (force !== '') return force !== '0' && force !== 'false'
  return no === '' && stream.isTTY === true && terminal !== 'dumb'
}

export const canAnimate = (): boolean =>
  process.stderr.isTTY === true && process.env.TERM !== 'dumb' && (process.env.CI ?? '') === ''

export const canDraw = (): boolean =>
  process.stdin.isTTY === true && process.stdout.isTTY === true && process.env.TERM !== 'dumb'

export const isReadAloud = (): boolean => process.env.INK_SCREEN_READER === 'true'
