import { Box } from 'ink'
import { hintOf } from './form.ts'
import { FieldLine } from './form-view.tsx'
import { applicableKeys } from './keys.ts'
import { noticeLines, troubleRows } from './layout.ts'
import { Line } from './line.tsx'
import type { State } from './state.ts'
import { oneLine } from './text.ts'
import { showAge, showClock } from './time.ts'

export const Bottom = ({ state, now }: { state: State; now: number }) => {
  const { dialog, notice } = state
  const prompt = dialog?.kind === 'form' && dialog.isPrompt ? dialog.form : undefined
  return (
    <Box flexDirection="column" flexShrink={0}>
      <TroubleLine state={state} now={now} />
      {noticeLines(state).map((line, index) => (
        <Line key={index} color={notice?.isError ? 'red' : 'green'}>
          {index === 0 ? (notice?.isError ? '! ' : '· ') : '  '}
          {line}
        </Line>
      ))}
      {prompt?.error !== undefined && <Line color="red">! {oneLine(prompt.error)}</Line>}
      {prompt?.fields.map((field) => (
        <FieldLine key={field.name} field={field} isTyped labelWidth={field.label.length} />
      ))}
      <Line dimColor>{prompt ? hintOf(prompt) : hintsFor(state)}</Line>
    </Box>
  )
}

const TroubleLine = ({ state, now }: { state: State; now: number }) => {
  const { trouble } = state
  if (!trouble) return null
  const age = showAge(now - trouble.since)
  const [reason, ...below] = troubleRows(state)
  return (
    <>
      <Line color="yellow">
        ! {trouble.isUnavailable ? 'Service unavailable' : 'Refused'} since {showClock(trouble.since)} ({age}
        ), retrying. {reason}
      </Line>
      {below.map((row, index) => (
        <Line key={index} color="yellow">
          {'  '}
          {row}
        </Line>
      ))}
    </>
  )
}

/** Returns the key hints that fit on one line, always including the hints for help and back. */
function hintsFor(state: State): string {
  if (state.dialog?.kind === 'form') return ''
  if (state.opening?.program === 'pager') return 'Loading… · Esc cancels'
  if (state.opening) return 'Keys go to the shell · Esc cancels'
  if (state.dialog?.kind === 'message') return 'Enter continues'
  if (state.dialog?.kind === 'confirm') return 'y yes · any other key no'
  const hints = applicableKeys(state)
    .filter(({ short }) => short !== undefined)
    .map(({ shown, short }) => `${shown.split(' ')[0]} ${short}`)
  const always = hints.splice(-2)
  const room = state.size.columns - always.join(' · ').length - 3
  let text = ''
  for (const hint of hints) {
    if (text.length + hint.length + 3 > room) break
    text += `${hint} · `
  }
  return text + always.join(' · ')
}
