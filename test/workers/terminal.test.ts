import { randomUUID } from 'node:crypto'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { type Driver, DriverUnavailable, type Pod } from '../../workers/drivers/driver.ts'
import type { ShellCommand } from '../../workers/shell/script.ts'
import { openSlot, type Slot } from '../../workers/shell/slot.ts'
import { openTerminal } from '../../workers/shell/terminal.ts'
import { readScreen, run } from '../drivers/processes.ts'
import { eventually } from '../support/eventually.ts'
import { changed, describeInSandboxes } from '../support/sandbox.ts'

describeInSandboxes('terminals', (open) => {
  const size = { rows: 24, columns: 80 }
  const canary = 'canary-5b1c'
  let sandbox: Awaited<ReturnType<typeof open>>
  let driver: Driver
  let pod: Pod
  const ways = (takeSlot: () => Promise<Slot>) => ({
    id: randomUUID(),
    takeSlot,
    beforeStart: async () => {},
  })
  const start = async (command: ShellCommand, through = driver) => {
    const options = ways(() => openSlot(through, pod))
    const terminal = await openTerminal(through, pod, command, size, options)
    terminal.stdout.setEncoding('utf8')
    return { terminal, screen: readScreen(terminal.stdout) }
  }

  beforeAll(async () => {
    sandbox = await open()
    driver = sandbox.driver
    pod = await sandbox.make()
  })
  afterAll(() => sandbox?.close())

  test('a command in a terminal receives its directory, environment and arguments unchanged', async () => {
    const words = ["it's", '$HOME', 'a  b', '*', 'ü€', '', 'two\nlines']
    const { terminal, screen } = await start({
      argv: ['/bin/sh', '-c', 'pwd; printf "[%s]" "$WORD" "$@"', 'sh', ...words],
      cwd: '/tmp',
      env: { WORD: "x'y z" },
    })
    expect(await terminal.ended).toEqual({ kind: 'exited', code: 0 })
    const shown = ["x'y z", ...words].map((word) => `[${word}]`).join('')
    expect(await screen.all).toBe(`/tmp\r\n${shown.replaceAll('\n', '\r\n')}`)
  })

  test("a terminal runs a command that exceeds the cluster's argv limit", async () => {
    const text = 'x'.repeat(100_000)
    const { terminal, screen } = await start({
      argv: ['/bin/sh', '-c', 'printf "%s%s" "$1" "$LONG" | wc -c', 'sh', text],
      env: { LONG: text },
    })
    expect(await terminal.ended).toEqual({ kind: 'exited', code: 0 })
    expect(await screen.all).toBe('200000\r\n')
  })

  test('a terminal reports the exit code of its command, or 127 if the command does not exist', async () => {
    for (const [argv, end] of [
      [['/bin/sh', '-c', 'exit 77'], { code: 77 }],
      [['no-such-command'], { code: 127, startError: 'not_found' }],
    ] as const) {
      const { terminal } = await start({ argv })
      expect(await terminal.ended).toEqual({ kind: 'exited', ...end })
    }
    const { terminal } = await start({ argv: ['true'], cwd: '/no/such/folder' })
    expect(await terminal.ended).toMatchObject({ code: 126 })
  })

  test('the argv that the cluster sees contains no part of a command that runs in a terminal', async () => {
    const seen: string[] = []
    const watched = changed(driver, {
      start: (where, argv, options) => {
        seen.push(JSON.stringify(argv))
        return driver.start(where, argv, options)
      },
    })
    const { terminal } = await start(
      { argv: ['echo', canary], env: { CANARY: canary }, cwd: '/tmp' },
      watched,
    )
    await terminal.ended
    expect(seen.length).toBe(2)
    expect(seen.filter((argv) => argv.includes(canary) || argv.includes('/tmp"'))).toEqual([])
  })

  test("the file that contains a terminal's command is deleted before the command runs", async () => {
    const { terminal, screen } = await start({ argv: ['/bin/sh', '-c', 'ls -A /tmp; echo end'] })
    await terminal.ended
    expect(await screen.all).toBe('end\r\n')
  })

  test("the file that contains a terminal's command is readable only by its owner", async () => {
    // This driver starts no shell on the terminal, so that the file can be inspected.
    const halfway = changed(driver, {
      start: async (where, argv, options) => {
        if (!options?.tty) return driver.start(where, argv, options)
        const { stdout } = await run(driver, pod, ['/bin/sh', '-c', 'ls -l "$1"', 'sh', argv[1]!])
        throw new DriverUnavailable(`mode ${stdout.slice(0, 10)}`)
      },
    })
    await expect(start({ argv: ['true'], env: { CANARY: canary } }, halfway)).rejects.toThrow(
      'mode -rw-------',
    )
    await eventually(async () => (await run(driver, pod, ['ls', '-A', '/tmp'])).stdout === '', 10_000)
  })

  test("the file that contains a terminal's command is written through a pre-opened slot", async () => {
    const slot = await openSlot(driver, pod)
    const carried = ways(async () => slot)
    const terminal = await openTerminal(driver, pod, { argv: ['stty', 'size'] }, size, carried)
    terminal.stdout.setEncoding('utf8')
    expect(await readScreen(terminal.stdout).all).toBe('24 80\r\n')
    await slot.closed
  })
})
