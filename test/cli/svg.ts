import type { IBufferCell, Terminal } from '@xterm/headless'

const cell = { width: 8.4, height: 18, font: 14 }
const margin = 12
const background = '#1e1e2e'
const foreground = '#cdd6f4'
/** The 16 terminal colors, dark ones first. */
const palette = [
  ...['#45475a', '#f38ba8', '#a6e3a1', '#f9e2af', '#89b4fa', '#f5c2e7', '#94e2d5', '#bac2de'],
  ...['#585b70', '#f38ba8', '#a6e3a1', '#f9e2af', '#89b4fa', '#f5c2e7', '#94e2d5', '#ffffff'],
]

interface Run {
  column: number
  cells: number
  text: string
  style: string
  isInverse: boolean
}

/** @param title description for screen readers */
export function toSvg({ buffer, rows, cols }: Terminal, title: string): string {
  const [width, height] = [cols * cell.width + 2 * margin, rows * cell.height + 2 * margin]
  const lines = Array.from({ length: rows }, (_, row) =>
    runsOf(buffer.active.getLine(row)!, cols).map((run) => draw(run, row)),
  )
  return `${[
    `<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 ${width} ${height}" role="img" aria-label="${escapeXml(title)}">`,
    `<title>${escapeXml(title)}</title>`,
    `<rect width="100%" height="100%" rx="8" fill="${background}"/>`,
    `<g font-family="ui-monospace, Menlo, Consolas, monospace" font-size="${cell.font}" fill="${foreground}">`,
    ...lines.flat(),
    '</g>',
    '</svg>',
  ].join('\n')}\n`
}

function runsOf(line: NonNullable<ReturnType<Terminal['buffer']['active']['getLine']>>, cols: number): Run[] {
  const runs: Run[] = []
  for (let column = 0; column < cols; column++) {
    const at = line.getCell(column)
    if (!at || at.getWidth() === 0) continue
    const [text, style, isInverse] = [at.getChars() || ' ', styleOf(at), at.isInverse() !== 0]
    const last = runs.at(-1)
    if (last && last.style === style && last.isInverse === isInverse) {
      last.text += text
      last.cells += at.getWidth()
    } else runs.push({ column, cells: at.getWidth(), text, style, isInverse })
  }
  return runs.filter(({ text, isInverse }) => isInverse || text.trim() !== '')
}

function styleOf(at: IBufferCell): string {
  const color = at.isInverse() ? background : at.isFgPalette() ? palette[at.getFgColor()] : undefined
  return [
    color && ` fill="${color}"`,
    at.isBold() && ' font-weight="bold"',
    at.isDim() && !at.isInverse() && ' opacity="0.6"',
  ]
    .filter(Boolean)
    .join('')
}

function draw(run: Run, row: number): string {
  const y = margin + row * cell.height
  const behind = run.isInverse
    ? `<rect ${across(run)} y="${y}" height="${cell.height}" fill="${foreground}"/>`
    : ''
  const words = wordsOf(run).map((word) => {
    const place = across(word).replace('width', 'textLength')
    return `<text ${place} y="${y + cell.font}"${run.style}>${escapeXml(word.text)}</text>`
  })
  return behind + words.join('')
}

/** Each word has its own position, because spaces may differ in width from letters. */
function wordsOf({ text, column, cells }: Run): Pick<Run, 'text' | 'column' | 'cells'>[] {
  // Wide characters do not match the cells, so their text is not split.
  if ([...text].length !== cells) return [{ text, column, cells }]
  return [...text.matchAll(/\S+(?: \S+)*/g)].map(({ 0: word, index }) => ({
    text: word,
    column: column + [...text.slice(0, index)].length,
    cells: [...word].length,
  }))
}

const across = ({ column, cells }: Pick<Run, 'column' | 'cells'>) =>
  `x="${round(margin + column * cell.width)}" width="${round(cells * cell.width)}"`

const round = (value: number) => Math.round(value * 10) / 10
const escapeXml = (text: string) => text.replace(/[&<>"]/g, (letter) => `&#${letter.charCodeAt(0)};`)
