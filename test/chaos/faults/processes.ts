/** API and worker processes: killed, frozen, told to stop, lied to about the time. */
import { setTimeout as sleep } from 'node:timers/promises'
import type { Seat } from '../stage.ts'
import { chosen, type Plan } from './plan.ts'

const minuteMs = 60_000
/** A stop may let what runs finish for 20 s, and a supervisor would wait a little more. */
const stopMs = 40_000

/** A start takes about so long. */
const startMs = 1_000

const seatOf = (seats: readonly Seat[], chance: number, kind?: Seat['kind']): Seat =>
  chosen(
    seats.filter((seat) => kind === undefined || seat.kind === kind),
    chance,
  )!

const freeze: Plan = ({ stage }, { target, lastsMs }) => {
  const seat = seatOf(stage.seats, target)
  return {
    target: seat.name,
    async act() {
      seat.process.signal('SIGSTOP')
      await sleep(lastsMs)
      seat.process.signal('SIGCONT')
    },
  }
}

const kill =
  (kind: Seat['kind']): Plan =>
  ({ stage }, { target, lastsMs }) => {
    const seat = seatOf(stage.seats, target, kind)
    return {
      target: seat.name,
      async act() {
        seat.isBeingEnded = true
        await seat.process.kill()
        await sleep(lastsMs)
        await stage.replace(seat)
      },
    }
  }

export const processFaults = {
  'a process is frozen shortly': freeze,
  'a process is frozen past its locks': freeze,
  'an API is killed': kill('api'),
  'a worker is killed': kill('worker'),
  'a start is frozen': ({ stage }, { target, chance, lastsMs }) => {
    const seat = seatOf(stage.seats, target)
    return {
      target: seat.name,
      async act() {
        seat.isBeingEnded = true
        await seat.process.kill()
        await stage.replace(seat, async (process) => {
          await sleep(chance * startMs)
          process.signal('SIGSTOP')
          await sleep(lastsMs)
          process.signal('SIGCONT')
        })
      },
    }
  },
  'a process is told to stop': ({ stage, ledger }, { target }) => {
    const seat = seatOf(stage.seats, target)
    return {
      target: seat.name,
      async act() {
        seat.isBeingEnded = true
        const { process } = seat
        const told = Promise.race([
          process.stop().then(() => undefined),
          sleep(stopMs, `it still runs ${stopMs} ms later`),
        ])
        const trouble = await told.catch((error) => String(error))
        if (trouble) ledger.wrong('a process did not stop in order', { seat: seat.name, trouble })
        await process.kill()
        await stage.replace(seat)
      },
    }
  },
  'a clock is moved': ({ stage }, { target, chance, lastsMs }) => {
    const seat = seatOf(stage.seats, target)
    return {
      target: `clock of ${seat.name}`,
      async act() {
        seat.setClock(Math.round((chance * 2 - 1) * 10 * minuteMs))
        await sleep(lastsMs)
        seat.setClock(0)
      },
    }
  },
} satisfies Record<string, Plan>
