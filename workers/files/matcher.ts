import { type Part, type Pattern, startsWithDot, type Token } from './pattern.ts'

/**
 * The matched path must be relative, without `.` or `..`.
 * @param options.dots whether `*`, `?`, `[…]` and `**` match names that begin with a dot
 */
export function makeMatcher(pattern: Pattern, options: { dots: boolean }): (path: string) => boolean {
  const expressions = pattern.alternatives.map((parts) => expressionOf(parts, options))
  return (path) => path !== '' && expressions.some((expression) => expression.test(path))
}

/**
 * Converts an alternative to a regular expression without exponential backtracking. The text between two `*`
 * or two `**` is matched as early as possible and never rematched.
 */
function expressionOf(parts: Part[], { dots }: { dots: boolean }): RegExp {
  let groups = 0
  /** A match never backtracks into a lookahead, which therefore emulates an atomic group. */
  const atomic = (make: () => string): string => {
    const group = ++groups
    return `(?=(${make()}))\\${group}`
  }
  const notHidden = dots ? '' : '(?!\\.)'
  const nameOf = (tokens: Token[]): string => {
    const [first = [], ...others] = splitAt(tokens, ({ kind }) => kind === 'many')
    const last = others.pop()
    return [
      startsWithDot(tokens) ? '' : notHidden,
      first.map(oneOf).join(''),
      ...others.map((some) => atomic(() => `[^/]*?${some.map(oneOf).join('')}`)),
      last ? `[^/]*${last.map(oneOf).join('')}` : '',
    ].join('')
  }
  const namesOf = (some: Part[]) => (some as Token[][]).map(nameOf).join('/')
  // A final `**` matches at least one name.
  const whole = parts.at(-1) === 'any depth' ? [...parts, [{ kind: 'many' } as const]] : parts
  const [first = [], ...others] = splitAt(whole, (part) => part === 'any depth')
  const last = others.pop()
  const anyDepth = `(?:${notHidden}[^/]+/)*`
  const source = [
    namesOf(first) + (last && first.length > 0 ? '/' : ''),
    ...others.map((some) => atomic(() => `${anyDepth}?${namesOf(some)}/`)),
    last ? anyDepth + namesOf(last) : '',
  ].join('')
  return new RegExp(`^${source}$`, 'u')
}

function splitAt<T>(items: T[], isSeparator: (item: T) => boolean): T[][] {
  const runs: T[][] = [[]]
  for (const item of items) {
    if (isSeparator(item)) runs.push([])
    else runs.at(-1)!.push(item)
  }
  return runs
}

function oneOf(token: Token): string {
  if (token.kind === 'character') return codeOf(token.character.codePointAt(0)!)
  if (token.kind !== 'set') return '[^/]'
  const ranges = token.ranges.filter(([from, to]) => from <= to)
  const set = ranges.map(([from, to]) => `${codeOf(from)}-${codeOf(to)}`).join('')
  return token.negated ? `[^/${set}]` : `(?!/)[${set}]`
}

const codeOf = (code: number): string => `\\u{${code.toString(16)}}`
