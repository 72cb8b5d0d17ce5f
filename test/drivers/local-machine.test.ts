import { describe, expect, test } from 'vitest'
import { type SystemView, sandboxCommand } from '../../workers/drivers/local/bwrap.ts'
import { limitFiles, listCgroupParents } from '../../workers/drivers/local/cgroup.ts'
import {
  describeIsolation,
  listWeaknesses,
  pickHostUid,
  readQuantity,
} from '../../workers/drivers/local/machine.ts'
import { buildFilter } from '../../workers/drivers/local/seccomp.ts'

const limits = { cpu: 0.5, memory: 2 ** 29, pids: 280 }

describe('control groups', () => {
  test("version 2 cgroups are created under the process's own cgroup if possible, otherwise at the root", () => {
    const mounts = 'proc /proc proc rw 0 0\ncgroup2 /sys/fs/cgroup cgroup2 rw,nosuid 0 0\n'
    expect(listCgroupParents('0::/user.slice/a.scope\n', mounts)).toEqual([
      { version: 2, folder: '/sys/fs/cgroup/user.slice/a.scope', controllers: ['cpu', 'memory', 'pids'] },
      { version: 2, folder: '/sys/fs/cgroup', controllers: ['cpu', 'memory', 'pids'] },
    ])
    expect(['cpu', 'memory', 'pids'].map((name) => limitFiles(2, name as 'cpu', limits))).toEqual([
      { 'cpu.max': '50000 100000' },
      { 'memory.max': '536870912', 'memory.swap.max': '0' },
      { 'pids.max': '280' },
    ])
  })

  test('finds each version 1 cgroup controller where it is mounted, and none on a machine without cgroups', () => {
    expect(listCgroupParents('', '')).toEqual([])
    const groups = '4:memory:/box/a\n2:cpu,cpuacct:/\n1:pids:/box/a\n0::/\n'
    const mounts =
      'cgroup /sys/fs/cgroup/cpu,cpuacct cgroup rw,cpu,cpuacct 0 0\ncgroup /sys/fs/cgroup/memory cgroup rw,memory 0 0\ncgroup /sys/fs/cgroup/freezer cgroup rw,freezer 0 0\n'
    expect(
      listCgroupParents(groups, mounts).map(({ folder, controllers }) => [folder, ...controllers]),
    ).toEqual([
      ['/sys/fs/cgroup/cpu,cpuacct/', 'cpu'],
      ['/sys/fs/cgroup/cpu,cpuacct', 'cpu'],
      ['/sys/fs/cgroup/memory/box/a', 'memory'],
      ['/sys/fs/cgroup/memory', 'memory'],
    ])
    expect(limitFiles(1, 'cpu', limits)).toEqual({
      'cpu.cfs_period_us': '100000',
      'cpu.cfs_quota_us': '50000',
    })
  })
})

test.each([
  ['500m', 0.5],
  ['1', 1],
  ['1.5', 1.5],
  ['512Mi', 536_870_912],
  ['1Gi', 1_073_741_824],
  ['2k', 2000],
])('converts the Kubernetes quantity %s to %d', (text, number) => {
  expect(readQuantity(text)).toBe(number)
})

test('picks a host uid that exists in the current user namespace and belongs to no ordinary user', () => {
  for (const random of [0, 0.5, 0.999999]) {
    expect(pickHostUid('         0          0 4294967295\n', random)).toBeGreaterThan(1_000_000_000)
    expect(pickHostUid('         0          0 4294967295\n', random)).toBeLessThan(2 ** 31)
    const inContainer = pickHostUid(
      '         0       1000          1\n         1     100000      65536\n',
      random,
    )
    expect(inContainer).toBeGreaterThan(32_000)
    expect(inContainer).toBeLessThanOrEqual(65_536)
  }
})

describe('the system call filter', () => {
  const numbers = {
    x64: {
      read: 0,
      io_uring: 425,
      keyctl: 250,
      mount: 165,
      clone: 56,
      clone3: 435,
      unshare: 272,
      socket: 41,
    },
    arm64: {
      read: 63,
      io_uring: 425,
      keyctl: 219,
      mount: 40,
      clone: 220,
      clone3: 435,
      unshare: 97,
      socket: 198,
    },
  }
  const audit = { x64: 0xc000003e, arm64: 0xc00000b7 }
  const [allow, EPERM, ENOSYS] = [0x7fff0000, 0x00050001, 0x00050026]

  describe.each(['x64', 'arm64'] as const)('on %s', (arch) => {
    const { read, io_uring, keyctl, mount, clone, clone3, unshare, socket } = numbers[arch]
    const judge = (number: number, first = 0, options = {}) =>
      runFilter(buildFilter(arch, options)!, { number, architecture: audit[arch], first })

    test.each([
      ['read', read, 0, allow],
      ['io_uring_setup', io_uring, 8, ENOSYS],
      ['keyctl', keyctl, 0, EPERM],
      ['mount', mount, 0, EPERM],
      ['a thread', clone, 0x003d0f00, allow],
      ['a fork', clone, 0x01200011, allow],
      ['a fork into a user namespace', clone, 0x10000011, EPERM],
      ['a fork into a network namespace', clone, 0x40000011, EPERM],
      ['clone3', clone3, 0, ENOSYS],
      ['a separate file table', unshare, 0x400, allow],
      ['a user namespace', unshare, 0x10000000, EPERM],
      ['a mount namespace', unshare, 0x00020000, EPERM],
      ['an internet socket', socket, 2, allow],
      ['a vsock socket to the host', socket, 40, EPERM],
    ])('the system call filter returns the expected action for %s', (_, number, first, answer) => {
      expect(judge(number, first)).toBe(answer)
    })

    test('the system call filter can allow the agent to create user namespaces, but no other kind of namespace', () => {
      const options = { mayUnshareUser: true }
      expect(judge(unshare, 0x10000000, options)).toBe(allow)
      expect(judge(unshare, 0x10020000, options)).toBe(EPERM)
      expect(judge(clone, 0x10000011, options)).toBe(EPERM)
    })

    test('the system call filter rejects calls that use the numbers of a different architecture or ABI', () => {
      const filter = buildFilter(arch)!
      expect(runFilter(filter, { number: read, architecture: 0x40000003, first: 0 })).toBe(EPERM)
      expect(judge(0x40000000 + read)).toBe(EPERM)
    })
  })

  test('no system call filter exists for an unknown processor architecture', () => {
    expect(buildFilter('riscv64')).toBeUndefined()
  })

  /** Runs a BPF filter as the kernel does. */
  function runFilter(program: Buffer, data: { number: number; architecture: number; first: number }): number {
    const at: Record<number, number> = { 0: data.number, 4: data.architecture, 16: data.first }
    for (let pc = 0, loaded = 0; ; pc++) {
      const code = program.readUInt16LE(pc * 8)
      const value = program.readUInt32LE(pc * 8 + 4)
      const holds = { 21: loaded === value, 53: loaded >= value, 69: (loaded & value) !== 0 }[code]
      if (code === 6) return value
      if (code === 32) loaded = at[value]!
      else pc += program.readUInt8(pc * 8 + (holds ? 2 : 3))
    }
  }
})

describe('the bubblewrap command line', () => {
  const view: SystemView = {
    bwrap: 'bwrap',
    node: '/usr/src/app/node_modules/node',
    code: '/usr/src/app/workers',
    shown: ['/usr', '/etc/ssl/certs'],
    links: [{ target: 'usr/bin', path: '/bin' }],
    hidden: ['/usr/src/app', '/home/me'],
    etc: [],
  }
  const plan = { home: '/data/pod', fileSize: 1024 }

  test('the bubblewrap command line mounts /usr before it hides a Sandlot checkout under /usr', () => {
    const command = sandboxCommand({ ...plan, isolation: 'user' }, view).join(' ')
    expect(command).toMatch(/--ro-bind \/usr \/usr .*--tmpfs \/usr\/src\/app/)
    expect(command).not.toContain('/home/me')
  })

  test("the bubblewrap command line makes only the pod's workspace writable", () => {
    const command = sandboxCommand({ ...plan, isolation: 'root', hostUid: 70_000 }, view)
    const bound = command.flatMap((word, index) => (word === '--bind' ? [command[index + 1]] : []))
    expect(bound).toEqual(['/data/pod/workspace'])
  })
})

test('reports which limits the machine cannot enforce, and how to fix that', () => {
  const view = {} as SystemView
  const machine = { isolation: 'user' as const, isRoot: false, cgroups: [], limits, fileSize: 1, view }
  expect(listWeaknesses(machine).join(' ')).toMatch(/no limit on cpu, memory, pids.*systemd-run/)
  expect(describeIsolation(machine)).toContain('control groups limit nothing')
})
