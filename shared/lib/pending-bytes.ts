/**
 * Messages smaller than this are copied. Otherwise, a view of a small message would keep the entire socket
 * read buffer in memory, which is up to 16 KiB with TLS.
 */
const smallBytes = 16 * 1024

export class PendingBytes {
  length = 0
  private readonly blocks: Buffer[] = []
  private readonly small: { block: Buffer | undefined; filled: number } = { block: undefined, filled: 0 }

  push(bytes: Buffer): void {
    const { small } = this
    this.length += bytes.length
    if (bytes.length >= smallBytes || small.filled + bytes.length > smallBytes) this.closeSmall()
    if (bytes.length >= smallBytes) {
      this.blocks.push(bytes)
      return
    }
    small.block ??= Buffer.allocUnsafeSlow(smallBytes)
    small.filled += bytes.copy(small.block, small.filled)
  }

  shift(): Buffer | undefined {
    if (this.blocks.length === 0) this.closeSmall()
    const block = this.blocks.shift()
    this.length -= block?.length ?? 0
    return block
  }

  private closeSmall(): void {
    const { small } = this
    if (small.filled > 0) this.blocks.push(Buffer.from(small.block!.subarray(0, small.filled)))
    small.filled = 0
  }
}
