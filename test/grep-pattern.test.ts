/** Translation of patterns into POSIX expressions, checked with GNU grep. */
import { spawnSync } from 'node:child_process'
import { describe, expect, test } from 'vitest'
import { translateGrepPattern } from '../shared/contract/grep-pattern.ts'

/** Pattern, POSIX form, matching line, non-matching line. */
const translations: [string, string, string, string][] = [
  ['TODO|FIXME', 'TODO|FIXME', 'a FIXME', 'TOD'],
  ['^\\d+$', '^[0-9]+$', '42', 'd'],
  ['a\\Db', 'a[^0-9]b', 'axb', 'a1b'],
  ['^\\w+$', '^[[:alnum:]_]+$', 'a_1', 'a-1'],
  ['a\\sb', 'a[[:space:]]b', 'a\tb', 'asb'],
  ['\\S', '[^[:space:]]', 's', ' \t'],
  ['a\\hb', 'a[[:blank:]]b', 'a b', 'ahb'],
  ['\\bcat\\b', '\\bcat\\b', 'a cat.', 'concat'],
  ['\\Bcat', '\\Bcat', 'concat', 'cat'],
  ['a\\tb', 'a\tb', 'a\tb', 'atb'],
  ['\\Aa\\z', '^a$', 'a', 'ab'],
  ['(?:a|b)c', '(a|b)c', 'bc', 'c'],
  ['(?<year>\\d{4})-', '([0-9]{4})-', '2026-', '206-'],
  ['".*?"', '".*"', '"a"', '"a'],
  ['^a{2,3}?$', '^a{2,3}$', 'aaa', 'a'],
  ['run\\(\\) {', 'run\\(\\) \\{', 'run() {', 'run()'],
  ['\\{a\\}\\/', '\\{a[}]/', '{a}/', 'a'],
  ['a{1,2\\}', 'a\\{1,2[}]', 'a{1,2}', 'aa'],
  ['\\"\\\'\\-\\#', '"\'-#', '"\'-#', '"'],
  ['[\\d.]+x', '[.0-9]+x', '1.2x', 'x'],
  ['^[\\w.-]+$', '^[.[:alnum:]_-]+$', 'a-b.c_d', 'a b'],
  ['[\\s,]', '[,[:space:]]', 'a\tb', 's'],
  ['[^\\s,]', '[^,[:space:]]', 's', ', '],
  ['[\\S]', '[^[:space:]]', 's', ' '],
  ['^[^\\W]$', '^[[:alnum:]_]$', 'a', '-'],
  ['^[\\D5]$', '^([^0-9]|[5])$', '5', '6'],
  ['^[\\s\\S]$', '^([^[:space:]]|[[:space:]])$', 'x', ''],
  ['^[^\\n]$', '^.$', 'n', ''],
  ['^[^"\\n]$', '^[^"]$', 'n', '"'],
  ['[\\t\\\\]', '[\t\\]', '\\', 't'],
  ['^[\\[\\]^-]$', '^[][^-]$', ']', '\\'],
  ['^[^\\]]$', '^[^]]$', '\\', ']'],
  ['^[\\^]$', '^\\^$', '^', 'a'],
  ['^[\\^-]$', '^[-^]$', '-', 'a'],
  ['^[\\d-x]$', '^[x0-9-]$', '-', 'y'],
  ['^[X-\\]]$', '^[]X-\\]$', ']', 'W'],
  ['^[!-\\]]$', '^[]!-\\]$', ']', '^'],
  ['^[[:upper:]a-c]$', '^[a-c[:upper:]]$', 'Q', 'd'],
  ['^[]a]$', '^[]a]$', ']', 'b'],
  ['^[\\🐈x-z]$', '^[🐈x-z]$', '🐈', 'w'],
  ['ä[äö]', 'ä[äö]', 'äö', 'äa'],
]

const refusals: [string, RegExp][] = [
  ['(?i)x', /has "\(\?i\)".*flags.*ignore_case/],
  ['a(?=b)', /has "\(\?=".*lookaround/],
  ['a(?!b)', /lookaround/],
  ['(?<=a)b', /lookaround/],
  ['(?<!a)b', /lookaround/],
  ['(?>a)', /has "\(\?>".*plain group/],
  ['(a)\\1', /has "\\1".*backreferences/],
  ['(?<n>a)\\k<n>', /has "\\k<n>".*backreferences/],
  ['\\p{Lu}', /has "\\p\{Lu\}".*\[\[:upper:\]\]/],
  ['[\\p{L}]', /has "\\p\{L\}"/],
  ['\\x41', /has "\\x41".*the character itself/],
  ['\\u{1F600}', /has "\\u\{1F600\}"/],
  ['a\\nb', /has "\\n".*matched separately/],
  ['[\\n]', /has "\\n".*matched separately/],
  ['\\Qa.b\\E', /has "\\Q".*fixed/],
  ['\\K', /has "\\K".*write "K"/],
  ['a++', /possessive/],
  ['*a', /nothing before "\*".*write "\\\*"/],
  ['(+)', /nothing before "\+"/],
  ['[^\\Dx]', /negated class/],
  ['[abc', /"\[" without/],
  ['[a\\]', /"\[" without/],
  ['[z-a]', /range/],
  ['a\\', /ends in a backslash/],
]

describe('grep patterns', () => {
  test.each(translations)(
    'translates the grep pattern %j to %j, which matches %j but not %j',
    (pattern, posix, matching, other) => {
      expect(translateGrepPattern(pattern)).toEqual({ posix })
      const grep = spawnSync('grep', ['-E', '-e', posix], {
        input: `${matching}\n${other}\n`,
        env: { PATH: process.env.PATH, LC_ALL: 'C.UTF-8' },
        encoding: 'utf8',
      })
      expect(grep).toMatchObject({ status: 0, stdout: `${matching}\n`, stderr: '' })
    },
  )

  test.each(refusals)(
    'names the rejected part of the pattern %s and suggests a replacement',
    (pattern, refused) => {
      expect(translateGrepPattern(pattern)).toEqual({ refused: expect.stringMatching(refused) })
    },
  )
})
