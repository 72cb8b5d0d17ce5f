/**
 * Output that a worker keeps for later readers, of all accounts together. A sandbox has its own bound; where many have
 * much, the account that has most gives first.
 */
export class KeptOutput {
  private readonly bySandbox = new Map<string, { accountId: string; bytes: number }>()
  private readonly byAccount = new Map<string, number>()
  /** Bytes. */
  total = 0

  note(sandboxId: string, accountId: string, bytes: number): void {
    const before = this.bySandbox.get(sandboxId)?.bytes ?? 0
    this.bySandbox.set(sandboxId, { accountId, bytes })
    this.add(accountId, bytes - before)
  }

  forget(sandboxId: string): void {
    const known = this.bySandbox.get(sandboxId)
    if (!known) return
    this.bySandbox.delete(sandboxId)
    this.add(known.accountId, -known.bytes)
  }

  /** Sandboxes in the order in which they give: those of the account that has most first, the largest of it first. */
  inOrder(): string[] {
    const sizeOf = (accountId: string) => this.byAccount.get(accountId) ?? 0
    return [...this.bySandbox]
      .sort(([, a], [, b]) => sizeOf(b.accountId) - sizeOf(a.accountId) || b.bytes - a.bytes)
      .map(([sandboxId]) => sandboxId)
  }

  private add(accountId: string, bytes: number): void {
    this.total += bytes
    const left = (this.byAccount.get(accountId) ?? 0) + bytes
    if (left > 0) this.byAccount.set(accountId, left)
    else this.byAccount.delete(accountId)
  }
}
