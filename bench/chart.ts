/** Draws SVG bar charts. Each bar ends at the median, and a line spans the 90th to the 99th percentile. */

export interface Bar {
  label: string
  ours: boolean
  median: number
  p90: number
  p99: number
}

export interface Panel {
  title: string
  unit: string
  bars: Bar[]
}

const width = { label: 330, bars: 420, figures: 200 }
const height = { title: 30, bar: 20, gap: 18 }
const colours = { ours: '#2563eb', theirs: '#9ca3af' }

/** Stacks the panels. Each panel has its own scale, which starts at zero. */
export function drawChart(panels: Panel[]): string {
  let top = 10
  const parts = panels.map((panel) => {
    const part = `<g transform="translate(10 ${top})">${drawPanel(panel)}</g>`
    top += height.title + panel.bars.length * height.bar + height.gap
    return part
  })
  const whole = width.label + width.bars + width.figures + 20
  return [
    `<svg xmlns="http://www.w3.org/2000/svg" width="${whole}" height="${top}" font-family="sans-serif" font-size="12">`,
    '<title>Medians, 90th and 99th percentiles of the rows in bench/RESULTS.md</title>',
    '<rect width="100%" height="100%" fill="#ffffff"/>',
    ...parts,
    '</svg>\n',
  ].join('\n')
}

function drawPanel({ title, unit, bars }: Panel): string {
  const longest = Math.max(...bars.map(({ p99 }) => p99))
  const heading = `<text y="16" font-weight="bold">${escaped(`${title} (${unit})`)}</text>`
  return [heading, ...bars.map((bar, at) => drawBar(bar, height.title + at * height.bar, longest))].join('\n')
}

function drawBar({ label, ours, median, p90, p99 }: Bar, y: number, longest: number): string {
  const x = (value: number) => (width.label + (value / longest) * width.bars).toFixed(1)
  const colour = ours ? colours.ours : colours.theirs
  const length = Number(x(median)) - width.label
  const middle = y + height.bar / 2 - 3
  return [
    `<text x="${width.label - 8}" y="${y + 11}" text-anchor="end">${escaped(label)}</text>`,
    `<rect x="${width.label}" y="${y}" width="${Math.max(1, length).toFixed(1)}" height="${height.bar - 6}" fill="${colour}"/>`,
    `<path d="M${x(median)} ${middle}H${x(p99)}M${x(p90)} ${middle - 4}v8" stroke="#111827" fill="none"/>`,
    `<text x="${Number(x(p99)) + 6}" y="${y + 11}" fill="#374151">${shown(median)} · ${shown(p90)} · ${shown(p99)}</text>`,
  ].join('')
}

export function shown(value: number): string {
  if (value >= 100) return Math.round(value).toLocaleString('en')
  return value >= 10 ? value.toFixed(1) : value.toFixed(2)
}

const escaped = (text: string) =>
  text.replaceAll('`', '').replaceAll('&', '&amp;').replaceAll('<', '&lt;').replaceAll('>', '&gt;')
