import type { BuildOptions } from 'esbuild'
import { root } from './root.mjs'

/** Defines `require` for CommonJS packages. */
const requireFunction = `
import { createRequire } from 'node:module'
const require = createRequire(import.meta.url)`

/** Bundles a server process into a few files, which saves two thirds of the CPU time that the process needs to start. */
export const serverBundle = {
  absWorkingDir: root,
  outExtension: { '.js': '.mjs' },
  bundle: true,
  splitting: true,
  format: 'esm',
  platform: 'node',
  target: 'node24',
  // Only a bundle's entry file is the main module.
  define: { 'import.meta.main': 'false' },
  // pg loads this package only on Cloudflare.
  external: ['pg-cloudflare'],
  banner: { js: requireFunction },
  logLevel: 'warning',
} satisfies BuildOptions
