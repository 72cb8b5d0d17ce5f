/** Loaded into each process of a chaos run. Routes connections to workers through relays, and shifts the clock. */
import { existsSync, readFileSync } from 'node:fs'
import { Socket } from 'node:net'
import { join } from 'node:path'

// Child processes do not load this file.
delete process.env.NODE_OPTIONS
const { CHAOS_WIRES: wires, CHAOS_CLOCK: clockFile } = process.env

const connect = Socket.prototype.connect
Socket.prototype.connect = function (...args) {
  const normalized = Array.isArray(args[0]) ? args[0] : undefined
  const options = normalized?.[0] ?? args[0]
  const wire = options?.port && join(wires, String(options.port))
  if (wire && existsSync(wire)) {
    const routed = { ...options, port: Number(readFileSync(wire, 'utf8')) }
    if (normalized) normalized[0] = routed
    else args[0] = routed
  }
  return connect.apply(this, args)
}

let shiftMs = 0
const readClock = () => {
  try {
    shiftMs = Number(readFileSync(clockFile, 'utf8')) || 0
  } catch {
    shiftMs = 0
  }
}
setInterval(readClock, 100).unref()

const RealDate = Date
const now = () => RealDate.now() + shiftMs
// A Proxy, so that dates created inside Node are also instances of this class.
globalThis.Date = new Proxy(RealDate, {
  get: (target, name) => (name === 'now' ? now : Reflect.get(target, name)),
  construct: (target, args, made) => Reflect.construct(target, args.length === 0 ? [now()] : args, made),
  apply: () => new RealDate(now()).toString(),
})
