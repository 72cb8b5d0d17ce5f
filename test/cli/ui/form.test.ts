import fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import {
  editLine,
  type Form,
  field,
  historyOf,
  insert,
  lineOf,
  newForm,
  pressInForm,
  valuesOf,
} from '../../../cli/ui/form.ts'

const typed = (text: string, ...keys: string[]) =>
  keys.reduce((line, key) => editLine(line, key) ?? insert(line, key), lineOf(text))

describe('line editing', () => {
  test.each([
    ['ab', ['left', 'x'], 'axb'],
    ['ab', ['home', 'x'], 'xab'],
    ['ab', ['backspace', 'backspace', 'backspace'], ''],
    ['ab', ['home', 'delete'], 'b'],
    ['one two  ', ['ctrl+w'], 'one '],
    ['one two', ['ctrl+u'], ''],
    ['one two', ['home', 'ctrl+k'], ''],
    ['🎈🎈', ['left', 'backspace'], '🎈'],
    ['', ['pasted\r\nlines\u001b[2J'], 'pasted lines[2J'],
  ])('editing the line %j with the keys %j results in %j', (text, keys, result) => {
    expect(typed(text, ...keys).text).toBe(result)
  })

  test('the cursor stays within the text of the line', () => {
    const keys = [...'left right home end backspace delete ctrl+w ctrl+u ctrl+k é'.split(' '), '語 x']
    fc.assert(
      fc.property(fc.array(fc.constantFrom(...keys)), (pressed) => {
        const { text, at } = typed('start 🎈', ...pressed)
        expect(at).toBeGreaterThanOrEqual(0)
        expect(at).toBeLessThanOrEqual([...text].length)
      }),
    )
  })
})

describe('forms', () => {
  const press = (form: Form, ...keys: string[]) =>
    keys.reduce<Form | 'submit' | 'cancel'>((before, key) => {
      if (typeof before === 'string') throw new Error(`It was over: ${before}`)
      return pressInForm(before, key, key.length === 1 ? key : '')
    }, form)
  const form = newForm('Title', [field('a', 'A'), field('b', 'B')], () => {})

  test('Enter moves to the next field, or submits the form from the last field', () => {
    const filled = press(form, 'x', 'return', 'y') as Form
    expect(valuesOf(filled)).toEqual({ a: 'x', b: 'y' })
    expect(press(filled, 'return')).toBe('submit')
    expect(valuesOf(press(filled, 'tab', 'z', 'up', 'w') as Form)).toEqual({ a: 'xz', b: 'yw' })
  })

  test('Esc cancels a form, and a busy form ignores all other keys', () => {
    expect(press(form, 'escape')).toBe('cancel')
    expect(press({ ...form, busy: 'signing up' }, 'x', 'return')).toMatchObject({ busy: 'signing up', at: 0 })
    expect(press({ ...form, busy: 'signing up' }, 'escape')).toBe('cancel')
  })

  test('the up and down keys recall earlier lines and return to the line being typed', () => {
    const prompt = newForm('Run', [field('command', '$')], () => {}, { past: historyOf(['first', 'second']) })
    const shown = (...keys: string[]) => valuesOf(press(prompt, 'd', 'r', ...keys) as Form).command
    expect(shown('up')).toBe('second')
    expect(shown('up', 'up', 'up')).toBe('first')
    expect(shown('up', 'up', 'down')).toBe('second')
    expect(shown('up', 'up', 'down', 'down', 'down')).toBe('dr')
    expect(shown('up', '!', 'down')).toBe('dr')
    expect(shown('up', '!', 'up', 'down')).toBe('second')
  })
})
