/** Checks before the start whether the cluster is prepared for sandboxes. */
import { WrongSettings } from './keep-running.ts'

/**
 * Also resolves if the cluster does not answer, because workers wait for it.
 * @param environment of the start
 * @throws {WrongSettings} with the command to run
 */
export async function guardCluster(environment: Record<string, string | undefined>): Promise<void> {
  // A worker without a kubeconfig reports it itself.
  if (environment.SANDBOX_DRIVER !== 'kubernetes' || !environment.KUBECONFIG) return
  // Not at the top: the Kubernetes client takes half a second to load.
  const { checkSetup } = await import('../../workers/drivers/kubernetes/setup.ts')
  const { readDriverSettings } = await import('../../shared/platform/settings.ts')
  try {
    await checkSetup(readDriverSettings(environment))
  } catch (error) {
    throw new WrongSettings((error as Error).message)
  }
}
