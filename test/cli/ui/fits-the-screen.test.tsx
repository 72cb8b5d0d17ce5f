import stringWidth from 'string-width'
import { describe, expect, test } from 'vitest'
import { newFolder } from '../../../cli/ui/folder.ts'
import { field, newForm } from '../../../cli/ui/form.ts'
import type { Page, State } from '../../../cli/ui/state.ts'
import { draw, sized } from './draw.tsx'
import { command, ended, entry, many, outputPage, session, sessionPage, stateWith, tailOf } from './sample.ts'

const nasty = `\u001b[2J\u001b]0;title\u0007日本語の名前🎈👩‍👩‍👧‍👦\u202e\t${'long '.repeat(20)}\r\nnext\u009b31m`
const web = session({ name: nasty, image: nasty, metadata: { [nasty]: nasty } })
const gone = ended({ id: 'sbx_gone', name: nasty, destroy_reason: 'pod_failed', destroy_detail: nasty })
const folder = {
  ...newFolder(`/workspace/${nasty}`),
  isCut: true,
  entries: Array.from({ length: 51 }, (_, n) =>
    entry(`${nasty}${n}`, n === 0 ? 'directory' : 'file', { owner: nasty, group: nasty, target: nasty }),
  ),
}

const pages: Record<string, Page[]> = {
  list: [{ at: 'list', pageId: 0 }],
  'first-run': [{ at: 'first-run', pageId: 1, step: 'method', address: `http://${nasty}`, method: 1 }],
  commands: [
    sessionPage(web.id, {
      commands: Array.from({ length: 60 }, (_, n) => command({ id: `${n}`, command: nasty })),
    }),
  ],
  files: [sessionPage(web.id, { tab: 'files', folder })],
  'a session that has ended': [sessionPage(gone.id)],
  output: [
    outputPage({ id: web.id, command: nasty, output: tailOf(`${nasty}\n`.repeat(100)), status: '✓ exit 0' }),
  ],
}

const form = newForm(
  'Title',
  [field('a', 'Label', { text: nasty }), field('b', 'Secret', { text: nasty, isHidden: true })],
  () => {},
)
const overlays: Record<string, Partial<State>> = {
  'on its own': {},
  'with a notice and trouble': {
    notice: { text: nasty, isError: true },
    trouble: { isUnavailable: true, since: 0, message: nasty },
  },
  'with a question': {
    dialog: { kind: 'confirm', question: `Destroy ${'x'.repeat(300)}?`, onYes: () => {} },
  },
  'with a line to type': {
    dialog: {
      kind: 'form',
      form: { ...form, fields: form.fields.slice(0, 1), error: 'no '.repeat(40) },
      isPrompt: true,
    },
    notice: { text: nasty, isError: false },
  },
  'with a form': { dialog: { kind: 'form', form: { ...form, error: nasty, busy: 'busy' }, isPrompt: false } },
  'with help': { dialog: { kind: 'help', top: 0 } },
  'with the command lines': { dialog: { kind: 'copy', at: 1 } },
}

/** Matches control characters, and escape sequences other than styles. */
const unsafe =
  // biome-ignore lint/suspicious/noControlCharactersInRegex: matches control characters
  /[\u0000-\u0009\u000b-\u001a\u001c-\u001f\u007f-\u009f\u202e]|\u001b(?!\[[\d;]*m)/

const sizes = [
  [80, 24],
  [20, 5],
  [200, 50],
] as const

describe.each(Object.entries(pages))('%s', (_, stack) => {
  const fits = (columns: number, rows: number, overlay: string) => {
    const change = overlays[overlay]!
    const state = stateWith([web, gone, ...many(100)], { pages: stack, selected: web.id, ...change })
    const frame = draw(sized(state, columns, rows))
    const lines = frame.split('\n')
    expect(lines.length, `${overlay}\n${frame}`).toBeLessThanOrEqual(rows)
    for (const line of lines) expect(stringWidth(line), `${overlay}\n${frame}`).toBeLessThanOrEqual(columns)
    expect(frame).not.toMatch(unsafe)
  }

  test('each dialog fits in 40 columns and 12 rows', () => {
    for (const overlay of Object.keys(overlays)) fits(40, 12, overlay)
  })

  test.each(sizes)('a notice and an error fit on the page at %i columns and %i rows', (columns, rows) => {
    fits(columns, rows, 'with a notice and trouble')
  })
})
