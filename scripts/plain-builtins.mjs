/** How bundles load Node's own modules. */
import { isBuiltin } from 'node:module'

/**
 * `import` reads every lazy property of a built-in module: with node:http that loads all of fetch, with node:fs all of
 * fs/promises, and the client takes twice as long to start. Here only the used properties are read.
 * @type {import('esbuild').Plugin}
 */
export const plainBuiltins = {
  name: 'plain-builtins',
  setup({ onResolve, onLoad }) {
    const namespace = 'builtin'
    onResolve({ filter: /^(node:)?[\w/]+$/ }, ({ path, kind }) =>
      isBuiltin(path) && kind === 'import-statement' ? { path, namespace, sideEffects: false } : undefined,
    )
    onLoad({ filter: /.*/, namespace }, async ({ path }) => {
      const names = Object.keys(await import(path)).filter(
        (name) => /^[a-z]\w*$/i.test(name) && name !== 'default',
      )
      // A pure call is left out of the bundle unless its result is used.
      const exported = names.map((name) => `export const ${name} = /* @__PURE__ */ (() => builtin.${name})()`)
      const builtin = `const builtin = process.getBuiltinModule(${JSON.stringify(path)})`
      return { contents: [builtin, 'export default builtin', ...exported].join('\n') }
    })
  },
}
