/** The difference of two texts as one hunk, since our edits are in one place. */

const around = 3

/** @returns a unified diff, empty when they are the same */
export function diff(file: string, before: string, after: string): string {
  if (before === after) return ''
  const [old, fresh] = [linesOf(before), linesOf(after)]
  const most = Math.min(old.length, fresh.length)
  let head = 0
  while (head < most && old[head] === fresh[head]) head++
  let tail = 0
  while (tail < most - head && old.at(-1 - tail) === fresh.at(-1 - tail)) tail++
  const from = Math.max(0, head - around)
  const [oldEnd, freshEnd] = [old.length - tail, fresh.length - tail]
  const rest = old.slice(oldEnd, oldEnd + around)
  const size = (end: number) => `${from + 1},${end - from + rest.length}`
  const lines = [
    `--- ${file}`,
    `+++ ${file}`,
    `@@ -${size(oldEnd)} +${size(freshEnd)} @@`,
    ...old.slice(from, head).map((line) => ` ${line}`),
    ...old.slice(head, oldEnd).map((line) => `-${line}`),
    ...fresh.slice(head, freshEnd).map((line) => `+${line}`),
    ...rest.map((line) => ` ${line}`),
  ]
  return `${lines.join('\n')}\n`
}

const linesOf = (text: string): string[] =>
  text
    .replace(/\n$/, '')
    .split('\n')
    .filter((_, i) => i > 0 || text !== '')
