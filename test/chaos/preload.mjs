/**
 * Loaded into each process of a chaos run before its own code: its connections to a worker go over a
 * wire where there is one, and its clock is moved by what a file says.
 */
import { existsSync, readFileSync } from 'node:fs'
import { Socket } from 'node:net'
import { join } from 'node:path'

// Not for what this process starts.
delete process.env.NODE_OPTIONS
const { CHAOS_WIRES: wires, CHAOS_CLOCK: clockFile } = process.env

const connect = Socket.prototype.connect
Socket.prototype.connect = function (...args) {
  const normalized = Array.isArray(args[0]) ? args[0] : undefined
  const options = normalized?.[0] ?? args[0]
  const wire = options?.port && join(wires, String(options.port))
  if (wire && existsSync(wire)) {
    const led = { ...options, port: Number(readFileSync(wire, 'utf8')) }
    if (normalized) normalized[0] = led
    else args[0] = led
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
// The class stays the same, so that dates which Node makes by itself are instances of it too.
globalThis.Date = new Proxy(RealDate, {
  get: (target, name) => (name === 'now' ? now : Reflect.get(target, name)),
  construct: (target, args, made) => Reflect.construct(target, args.length === 0 ? [now()] : args, made),
  apply: () => new RealDate(now()).toString(),
})
