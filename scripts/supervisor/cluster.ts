import { WrongSettings } from './keep-running.ts'

/**
 * Checks the cluster's setup. An unreachable cluster is not an error, because workers wait for it.
 * @throws {WrongSettings} if the setup is incomplete; the message contains the command to run
 */
export async function guardCluster(environment: Record<string, string | undefined>): Promise<void> {
  // The worker reports a missing KUBECONFIG.
  if (environment.SANDBOX_DRIVER !== 'kubernetes' || !environment.KUBECONFIG) return
  // Imported on demand, because the Kubernetes client takes half a second to load.
  const { checkSetup } = await import('../../workers/drivers/kubernetes/setup.ts')
  const { readDriverSettings } = await import('../../shared/platform/settings.ts')
  try {
    await checkSetup(readDriverSettings(environment))
  } catch (error) {
    throw new WrongSettings((error as Error).message)
  }
}
