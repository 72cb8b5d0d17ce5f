/** Build options that bundle a server process into a few files, which reduces the CPU time of a start by two thirds. */
import type { BuildOptions } from 'esbuild'
import { root } from './root.mjs'

/** Code that defines `require` for bundled CommonJS packages. Like Node's, it throws if a package is missing. */
const requireFunction = `
import { createRequire } from 'node:module'
const require = createRequire(import.meta.url)`

/** Shared esbuild options. Each build adds `entryPoints` and `outdir`, and optionally plugins. */
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
