/** Whether the cluster is prepared for sandboxes: asked before anything starts. */
import { WrongSettings } from './keep-running.ts'

/**
 * Resolves too when the cluster does not answer: workers wait for it.
 * @param environment of the start
 * @throws {WrongSettings} with what to run
 */
export async function guardCluster(environment: Record<string, string | undefined>): Promise<void> {
  // A worker without a kubeconfig says so itself.
  if (environment.SANDBOX_DRIVER !== 'kubernetes' || !environment.KUBECONFIG) return
  // Not at the top: the client of Kubernetes takes half a second to load.
  const { checkSetup } = await import('../../workers/drivers/kubernetes/setup.ts')
  const { readDriverSettings } = await import('../../shared/platform/settings.ts')
  try {
    await checkSetup(readDriverSettings(environment))
  } catch (error) {
    throw new WrongSettings((error as Error).message)
  }
}
