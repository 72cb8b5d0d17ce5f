/** Bundles the code of a server process into a few files, with which it starts with a third of the CPU. */
import type { BuildOptions } from 'esbuild'
import { root } from './root.mjs'

/** For packages in CommonJS: a missing optional package throws, as usual. */
const requireFunction = `
import { createRequire } from 'node:module'
const require = createRequire(import.meta.url)`

/** The build adds `entryPoints` and `outdir`, and may add plugins. */
export const serverBundle = {
  absWorkingDir: root,
  outExtension: { '.js': '.mjs' },
  bundle: true,
  splitting: true,
  format: 'esm',
  platform: 'node',
  target: 'node24',
  // Only the entry of a bundle is the main module.
  define: { 'import.meta.main': 'false' },
  // Only Cloudflare needs it.
  external: ['pg-cloudflare'],
  banner: { js: requireFunction },
  logLevel: 'warning',
} satisfies BuildOptions
