/**
 * The seccomp filter is a classic BPF program that the kernel runs before each system call. The filter
 * rejects the system calls that container runtimes also reject by default, and all system calls from programs
 * for a different architecture, such as 32-bit programs.
 */

/** A system call's number on each architecture. From 424 on, the numbers are the same on both. */
type Numbers = readonly [x64: number | undefined, arm64: number | undefined]

/** System calls that fail with ENOSYS, so that libraries fall back to older calls. */
const missing: Record<string, Numbers> = {
  io_uring_setup: [425, 425],
  io_uring_enter: [426, 426],
  io_uring_register: [427, 427],
  // A filter cannot read the flags of `clone3`, which are in memory. Without `clone3`, libraries call
  // `clone`, whose flags are in a register.
  clone3: [435, 435],
}

/** System calls that fail with EPERM. */
const refused: Record<string, Numbers> = {
  add_key: [248, 217],
  request_key: [249, 218],
  keyctl: [250, 219],
  bpf: [321, 280],
  perf_event_open: [298, 241],
  userfaultfd: [323, 282],
  open_by_handle_at: [304, 265],
  setns: [308, 268],
  mount: [165, 40],
  umount2: [166, 39],
  pivot_root: [155, 41],
  chroot: [161, 51],
  open_tree: [428, 428],
  move_mount: [429, 429],
  fsopen: [430, 430],
  fsconfig: [431, 431],
  fsmount: [432, 432],
  fspick: [433, 433],
  mount_setattr: [442, 442],
  quotactl: [179, 60],
  quotactl_fd: [443, 443],
  fanotify_init: [300, 262],
  lookup_dcookie: [212, 18],
  nfsservctl: [180, 42],
  acct: [163, 89],
  swapon: [167, 224],
  swapoff: [168, 225],
  reboot: [169, 142],
  kexec_load: [246, 104],
  kexec_file_load: [320, 294],
  init_module: [175, 105],
  finit_module: [313, 273],
  delete_module: [176, 106],
  settimeofday: [164, 170],
  clock_settime: [227, 112],
  sethostname: [170, 161],
  setdomainname: [171, 162],
  syslog: [103, 116],
  vhangup: [153, 58],
  uselib: [134, undefined],
  ioperm: [173, undefined],
  iopl: [172, undefined],
}

const unshare: Numbers = [272, 97]
const clone: Numbers = [56, 220]
const socket: Numbers = [41, 198]

const cloneNewUser = 0x10000000
const cloneNewOthers = 0x00020000 | 0x02000000 | 0x04000000 | 0x08000000 | 0x20000000 | 0x40000000
/** Sockets that connect a virtual machine to its host. Network namespaces do not confine them. */
const AF_VSOCK = 40

const architectures: Record<string, { audit: number; column: 0 | 1 }> = {
  x64: { audit: 0xc000003e, column: 0 },
  arm64: { audit: 0xc00000b7, column: 1 },
}
const x32Bit = 0x40000000

const EPERM = 1
const ENOSYS = 38
const offsets = { number: 0, architecture: 4, firstArgument: 16 }
const retAllow = 0x7fff0000
const retErrno = 0x00050000

const load = (offset: number) => instruction(0x20, offset)
const answer = (value: number) => instruction(0x06, value)
const fail = (errno: number) => answer(retErrno | errno)
const equals = (value: number, skip: number) => instruction(0x15, value, 0, skip)
const differs = (value: number, skip: number) => instruction(0x15, value, skip, 0)
const reaches = (value: number, skip: number) => instruction(0x35, value, 0, skip)
const hasAnyOf = (bits: number, skip: number) => instruction(0x45, bits, 0, skip)

/** Returns the filter, or undefined if `arch`, a value of `process.arch`, is not supported. */
export function buildFilter(
  arch: string,
  { mayUnshareUser = false }: { mayUnshareUser?: boolean } = {},
): Buffer | undefined {
  const architecture = architectures[arch]
  if (!architecture) return undefined
  const { audit, column } = architecture
  const when = (numbers: Numbers, then: Buffer[]): Buffer[] => {
    const number = numbers[column]
    return number === undefined ? [] : [equals(number, then.length), ...then]
  }
  const whenFirst = (numbers: Numbers, test: Buffer) =>
    when(numbers, [load(offsets.firstArgument), test, fail(EPERM), answer(retAllow)])
  return Buffer.concat([
    load(offsets.architecture),
    ...[differs(audit, 1), fail(EPERM)],
    load(offsets.number),
    ...[reaches(x32Bit, 1), fail(EPERM)],
    ...whenFirst(unshare, hasAnyOf(mayUnshareUser ? cloneNewOthers : cloneNewOthers | cloneNewUser, 1)),
    ...whenFirst(clone, hasAnyOf(cloneNewOthers | cloneNewUser, 1)),
    ...whenFirst(socket, equals(AF_VSOCK, 1)),
    ...Object.values(missing).flatMap((numbers) => when(numbers, [fail(ENOSYS)])),
    ...Object.values(refused).flatMap((numbers) => when(numbers, [fail(EPERM)])),
    answer(retAllow),
  ])
}

/** Encodes a BPF instruction (`sock_filter`), whose layout is the same on both architectures. */
function instruction(code: number, value: number, ifTrue = 0, ifFalse = 0): Buffer {
  const bytes = Buffer.alloc(8)
  bytes.writeUInt16LE(code, 0)
  bytes.writeUInt8(ifTrue, 2)
  bytes.writeUInt8(ifFalse, 3)
  bytes.writeUInt32LE(value >>> 0, 4)
  return bytes
}
