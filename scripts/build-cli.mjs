/**
 * Bundles the client into cli/dist, the only folder in the client's package. Each command has its own file,
 * which makes it start three times as fast as from a single file. Only the interactive picker is not faster.
 */
import { rmSync } from 'node:fs'
import { mkdir, readFile, rename, writeFile } from 'node:fs/promises'
import { dirname, join } from 'node:path'
import { plainBuiltins } from './plain-builtins.mjs'
import { root } from './root.mjs'
import { describeThirdParty, packagesIn } from './third-party.mjs'

/** @throws {Error} with esbuild's messages if the build fails */
export async function buildCli() {
  const outdir = join(root, 'cli', 'dist')
  const files = await bundle(outdir)
  await replaceFolder(outdir, async (folder) => {
    for (const [name, text] of files) {
      const path = join(folder, name)
      await mkdir(dirname(path), { recursive: true })
      await writeFile(path, text)
    }
  })
}

async function bundle(outdir) {
  // Imported on demand, because the client loads this file before dependencies are installed.
  const { build, stop } = await import('esbuild')
  const { version } = JSON.parse(await readFile(join(root, 'package.json'), 'utf8'))
  const { engines } = JSON.parse(await readFile(join(root, 'cli', 'package.json'), 'utf8'))
  const oldest = engines.node.replace('>=', '')
  const { outputFiles, metafile } = await build({
    absWorkingDir: root,
    entryPoints: ['cli/main.ts'],
    outdir,
    bundle: true,
    splitting: true,
    format: 'esm',
    platform: 'node',
    target: `node${oldest}`,
    // Prefers ES modules, because bundlers cannot find the files that jsonc-parser's CommonJS version loads.
    mainFields: ['module', 'main'],
    minifyWhitespace: true,
    minifySyntax: true,
    legalComments: 'none',
    define: {
      oldestNode: JSON.stringify(oldest),
      clientVersion: JSON.stringify(version),
      // Stops ws from searching for native helpers, which are never installed.
      'process.env.WS_NO_BUFFER_UTIL': '"1"',
      'process.env.WS_NO_UTF_8_VALIDATE': '"1"',
      // Omits React's development checks.
      'process.env.NODE_ENV': '"production"',
    },
    plugins: [withoutUnused, withProgram, withLazyStringWidth, withYogaBinary, plainBuiltins],
    banner: { js: requireBuiltin },
    metafile: true,
    write: false,
    logLevel: 'silent',
  }).finally(stop) // Stops esbuild's helper process.
  const files = new Map(outputFiles.map(({ path, text }) => [path.slice(outdir.length + 1), text]))
  files.set(
    'main.js',
    files.get('main.js').replace(requireBuiltin, `${provideGetBuiltin}\n${requireBuiltin}`),
  )
  files.set('LICENSE', await readFile(join(root, 'LICENSE'), 'utf8'))
  files.set('THIRD-PARTY.txt', describeThirdParty('The client', packagesIn(metafile)))
  return files
}

const getBuiltin = 'globalThis.process.getBuiltinModule'
/** Defines `require` for CommonJS packages, which use it only to load built-in modules. */
const requireBuiltin = `const require = ${getBuiltin};`
/** Adds `process.getBuiltinModule` to Node 20.12 to 20.15, which lack it. */
const provideGetBuiltin = `${getBuiltin} ??= (await import("node:module")).createRequire(import.meta.url);`

/** Replaces two unused modules with empty modules: React's devtools, and `node:child_process` in commander. */
const withoutUnused = {
  name: 'without-unused',
  setup({ onLoad, onResolve }) {
    onResolve({ filter: /^(react-devtools-core|node:child_process)$/ }, ({ path, importer }) => {
      const isUnused = path === 'react-devtools-core' || importer.includes('/node_modules/commander/')
      return isUnused ? { path, namespace: 'unused' } : undefined
    })
    onLoad({ filter: /.*/, namespace: 'unused' }, () => ({ contents: 'export default undefined' }))
  },
}

/** Replaces `string-width` with string-width.mjs, which loads it on demand. */
const withLazyStringWidth = {
  name: 'with-lazy-string-width',
  setup({ onResolve }) {
    const path = join(root, 'scripts', 'string-width.mjs')
    onResolve({ filter: /^string-width$/ }, ({ importer }) => (importer === path ? undefined : { path }))
  },
}

/**
 * Passes Yoga, the layout engine of Ink, its WebAssembly as a buffer. On its own, Yoga would load Node's fetch, or
 * decode base64 in JavaScript, which takes 3 ms.
 */
const withYogaBinary = {
  name: 'with-yoga-binary',
  setup({ onLoad }) {
    onLoad({ filter: /yoga-wasm-base64-esm\.js$/ }, async ({ path }) => {
      const source = await readFile(path, 'utf8')
      const [url, base64] = /data:application\/octet-stream;base64,([\w+/=]+)/.exec(source)
      const wasmBinary = `Buffer.from("${base64}", "base64")`
      const [before, after] = source.replace(url, '').split('loadYoga = loadYoga || {};')
      return { contents: `${before}loadYoga = { wasmBinary: ${wasmBinary} };${after}` }
    })
  },
}

/**
 * Adds an import of program.ts to every module, so that esbuild bundles program.ts and all modules it imports
 * into one file. Otherwise, nearly every command would load a dozen small files, at 0.5 ms each.
 */
const withProgram = {
  name: 'with-program',
  setup({ onLoad }) {
    const program = join(root, 'cli', 'program.ts')
    const main = join(root, 'cli', 'main.ts')
    onLoad({ filter: /\/cli\/.*\.tsx?$/ }, async ({ path }) => {
      if (path === main) return undefined
      // See plain-builtins.mjs.
      const source = (await readFile(path, 'utf8')).replace(
        /\bimport\(('node:[\w/]+')\)/g,
        'Promise.resolve(process.getBuiltinModule($1))',
      )
      const contents = `${source}\nimport ${JSON.stringify(program)}`
      return { contents, loader: path.endsWith('x') ? 'tsx' : 'ts' }
    })
  },
}

/** Fills a new folder, then renames it to `path`, so that a starting client never loads a partial build. */
async function replaceFolder(path, fill) {
  const [fresh, old] = [`${path}.${process.pid}.new`, `${path}.${process.pid}.old`]
  try {
    await fill(fresh)
    await rename(path, old).catch((error) => {
      if (error.code !== 'ENOENT') throw error
    })
    await rename(fresh, path)
  } finally {
    rmSync(fresh, { recursive: true, force: true })
    rmSync(old, { recursive: true, force: true })
  }
}
