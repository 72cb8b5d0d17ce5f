/** Text edited with readline's key bindings. */
export interface Line {
  text: string
  /** Cursor position in code points. */
  at: number
}

export const lineOf = (text: string): Line => ({ text, at: [...text].length })

/** Returns the line after a key press, or undefined if the key does not edit. */
export function editLine({ text, at }: Line, key: string): Line | undefined {
  const points = [...text]
  const keep = (from: number, to: number) => points.toSpliced(from, to - from).join('')
  switch (key) {
    case 'left':
    case 'ctrl+b':
      return { text, at: Math.max(0, at - 1) }
    case 'right':
    case 'ctrl+f':
      return { text, at: Math.min(points.length, at + 1) }
    case 'home':
    case 'ctrl+a':
      return { text, at: 0 }
    case 'end':
    case 'ctrl+e':
      return { text, at: points.length }
    case 'backspace':
      return at === 0 ? { text, at } : { text: keep(at - 1, at), at: at - 1 }
    case 'delete':
    case 'ctrl+d':
      return { text: keep(at, at + 1), at }
    case 'ctrl+u':
      return { text: keep(0, at), at: 0 }
    case 'ctrl+k':
      return { text: keep(at, points.length), at }
    case 'ctrl+w': {
      const before = points
        .slice(0, at)
        .join('')
        .replace(/\S*\s*$/, '')
      return { text: before + points.slice(at).join(''), at: [...before].length }
    }
  }
  return undefined
}

/** @param keepsLines whether to keep newlines and tabs instead of replacing them with spaces */
export function insert({ text, at }: Line, added: string, keepsLines = false): Line {
  const lines = added.replace(/\r\n?/g, '\n')
  const clean = [...(keepsLines ? lines : lines.replace(/[\n\t]+/g, ' ')).replace(controls, '')]
  return { text: [...text].toSpliced(at, 0, ...clean).join(''), at: at + clean.length }
}

// biome-ignore lint/suspicious/noControlCharactersInRegex: matches control characters
const controls = /[\u0000-\u0008\u000b-\u001f\u007f-\u009f]/g
