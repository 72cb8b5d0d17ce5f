/** Bundles the client into cli/dist. Throws with esbuild's messages. */
export function buildCli(): Promise<void>
