import { isBuiltin } from 'node:module'

/**
 * Makes bundles evaluate only those properties of built-in modules that they use. A plain `import` also evaluates every
 * lazy property, such as fetch, which would double the client's startup time.
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
      // esbuild omits unused calls that are marked as pure.
      const exported = names.map((name) => `export const ${name} = /* @__PURE__ */ (() => builtin.${name})()`)
      const builtin = `const builtin = process.getBuiltinModule(${JSON.stringify(path)})`
      return { contents: [builtin, 'export default builtin', ...exported].join('\n') }
    })
  },
}
