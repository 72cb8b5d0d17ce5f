/** What the local driver makes of machines that this one is not. */
import { describe, expect, test } from 'vitest'
import { type SystemView, sandboxCommand } from '../../workers/drivers/local/bwrap.ts'
import { limitFiles, listCgroupParents } from '../../workers/drivers/local/cgroup.ts'
import { describeIsolation, listWeaknesses, pickHostUid } from '../../workers/drivers/local/machine.ts'
import { readQuantity } from '../../workers/drivers/local/quantity.ts'

const limits = { cpu: 0.5, memory: 2 ** 29, pids: 280 }

describe('control groups', () => {
  test('version 2: below the own group, else at the root', () => {
    const mounts = 'proc /proc proc rw 0 0\ncgroup2 /sys/fs/cgroup cgroup2 rw,nosuid 0 0\n'
    expect(listCgroupParents('0::/user.slice/a.scope\n', mounts)).toEqual([
      { version: 2, folder: '/sys/fs/cgroup/user.slice/a.scope', controllers: ['cpu', 'memory', 'pids'] },
      { version: 2, folder: '/sys/fs/cgroup', controllers: ['cpu', 'memory', 'pids'] },
    ])
    expect(['cpu', 'memory', 'pids'].map((name) => limitFiles(2, name as 'cpu', limits))).toEqual([
      [['cpu.max', '50000 100000']],
      [
        ['memory.max', '536870912'],
        ['memory.swap.max', '0'],
      ],
      [['pids.max', '280']],
    ])
  })

  test('version 1: each controller where it is mounted', () => {
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
    expect(limitFiles(1, 'cpu', limits)).toEqual([
      ['cpu.cfs_period_us', '100000'],
      ['cpu.cfs_quota_us', '50000'],
    ])
  })

  test('nothing where there is nothing', () => {
    expect(listCgroupParents('', '')).toEqual([])
  })
})

test.each([
  ['500m', 0.5],
  ['1', 1],
  ['1.5', 1.5],
  ['512Mi', 536_870_912],
  ['1Gi', 1_073_741_824],
  ['2k', 2000],
])('the quantity %s is %d', (text, number) => {
  expect(readQuantity(text)).toBe(number)
})

test('a host uid is one that exists in this user namespace, and no ordinary one', () => {
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

describe('the command line', () => {
  const view: SystemView = {
    bwrap: 'bwrap',
    node: '/usr/src/app/node_modules/node',
    code: '/usr/src/app/workers',
    shown: ['/usr', '/etc/ssl/certs'],
    links: [{ target: 'usr/bin', path: '/bin' }],
    hidden: ['/usr/src/app', '/home/me'],
    etc: [],
  }
  const plan = { home: '/data/pod', marker: 'uid', fileSize: 1024 }

  test('a checkout below /usr is hidden, after /usr is shown', () => {
    const command = sandboxCommand({ ...plan, isolation: 'user' }, view).join(' ')
    expect(command).toMatch(/--ro-bind \/usr \/usr .*--tmpfs \/usr\/src\/app/)
    expect(command).not.toContain('/home/me')
  })

  test('nothing but the pod’s own folders can be written', () => {
    const command = sandboxCommand({ ...plan, isolation: 'root', hostUid: 70_000 }, view)
    const bound = command.flatMap((word, index) => (word === '--bind' ? [command[index + 1]] : []))
    expect(bound).toEqual(['/data/pod/run', '/data/pod/workspace'])
  })
})

test('a machine without limits says which and what to do', () => {
  const machine = {
    isolation: 'user' as const,
    isRoot: false,
    cgroups: [],
    limits,
    fileSize: 1,
    processes: 1,
    view: {} as SystemView,
  }
  expect(listWeaknesses(machine).join(' ')).toMatch(/Nothing limits the cpu, memory, pids .*systemd-run/)
  expect(describeIsolation(machine)).toContain('limits of nothing')
})
