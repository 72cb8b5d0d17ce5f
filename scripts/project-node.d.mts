/** The path of the Node to run the project with. Throws when there is none. */
export function projectNode(): string

/** Runs a script on a Node with our terminal and passes signals on; resolves to its exit code. */
export function runOnNode(
  node: string,
  args: string[],
  environment?: Record<string, string | undefined>,
): Promise<number>
