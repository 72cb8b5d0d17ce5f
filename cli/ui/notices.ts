import { describeError } from '../core/errors.ts'
import type { Ui } from './ui.ts'

export const showNotice = ({ store }: Ui, text: string): void =>
  store.set({ notice: { text, isError: false } })

export function showError({ store }: Ui, error: unknown): void {
  store.set({ notice: { text: errorText(error), isError: true } })
}

export function errorText(error: unknown): string {
  const { message, hint, details } = describeError(error)
  const request = typeof details.request_id === 'string' ? `(request ${details.request_id})` : undefined
  return [message, hint, request].filter((part) => part !== undefined).join(' ')
}

export function attempt(ui: Ui, action: () => Promise<void>): void {
  action().catch((error) => showError(ui, error))
}
