/**
 * Rewrites how a bundle loads Node's own modules. `import` wraps all exports of a module and touches
 * every lazy getter on the way: with node:http that loads all of fetch, with node:fs all of fs/promises, and a
 * client that needs neither takes twice as long to start. process.getBuiltinModule returns the module as it is.
 */
import { builtinModules } from 'node:module'

const get = 'globalThis.process.getBuiltinModule'
/** `import * as a from "x"`, `import a, { b as c } from "x"`, as esbuild prints them, minified or not. */
const statement =
  /\bimport\s*(?:\*\s*as\s+([\w$]+)|([\w$]+)?\s*,?\s*(\{[^}]*\})?)\s*from\s*"((?:node:)?[\w/]+)"/g
const call = /\bimport\("((?:node:)?[\w/]+)"\)/g

/** For packages in CommonJS, at the top of each file. */
export const requireBuiltin = `const require = ${get};`

/** Before Node 22.3 there is only a slower way. This goes to the top of the file that starts first. */
export const provideGet = `${get} ??= (await import("node:module")).createRequire(import.meta.url);`

/**
 * @param {string} code of one file
 * @param {{path: string, kind: string, external?: boolean}[]} imports of that file, as esbuild lists them
 * @throws {Error} when one of them is no module of Node's, or was not found in the code
 */
export function takeBuiltins(code, imports) {
  const external = imports.filter((each) => each.external)
  for (const { path } of external) {
    if (!isBuiltin(path)) throw new Error(`The client's bundle would need ${path} to be installed.`)
  }
  let found = 0
  const count = (text) => {
    found++
    return text
  }
  const taken = code
    .replace(statement, (text, all, main, named, name) =>
      isBuiltin(name) ? count(declare(`${get}("${name}")`, all ?? main, named)) : text,
    )
    .replace(call, (text, name) => (isBuiltin(name) ? count(`Promise.resolve(${get}("${name}"))`) : text))
  const expected = external.filter(({ kind }) => kind !== 'require-call').length
  if (found !== expected) throw new Error(`Of ${expected} imports of Node's modules ${found} were found.`)
  return taken
}

function declare(module, whole, named) {
  const names = named?.replaceAll(' as ', ': ')
  if (whole === undefined) return `const ${names} = ${module}`
  return `const ${whole} = ${module}${names === undefined ? '' : `, ${names} = ${whole}`}`
}

const isBuiltin = (name) => builtinModules.includes(name.replace(/^node:/, ''))
