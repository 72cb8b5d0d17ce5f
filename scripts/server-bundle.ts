/** How all code of a process of the server goes into a few files: it then starts with a third of the CPU. */
import type { BuildOptions } from 'esbuild'
import { root } from './root.mjs'

/** For packages in CommonJS: what is not there throws, and they do without it. */
const requireAsUsual = `
import { createRequire } from 'node:module'
const require = createRequire(import.meta.url)`

/** Whoever builds adds `entryPoints` and `outdir`, and may add plugins. */
export const serverBundle = {
  absWorkingDir: root,
  outExtension: { '.js': '.mjs' },
  bundle: true,
  splitting: true,
  format: 'esm',
  platform: 'node',
  target: 'node24',
  // No part of a bundle is what was started; each entry is.
  define: { 'import.meta.main': 'false' },
  // MikroORM and pg look for what only other databases and Cloudflare need.
  external: ['pg-cloudflare'],
  banner: { js: requireAsUsual },
  logLevel: 'warning',
} satisfies BuildOptions
