/**
 * Runs a file of test/setup/bundle.ts, the first argument, with the V8 code cache of earlier processes. It includes
 * functions, while Node's compile cache contains only top-level code.
 */
'use strict'
const { readFileSync, renameSync, statSync, writeFileSync } = require('node:fs')
const { createRequire } = require('node:module')
const { pathToFileURL } = require('node:url')
const vm = require('node:vm')

/** Number of processes that write the cache. Each starts with the previous cache and adds to it. */
const maxWriters = 8

const file = process.argv[2]
const kept = `${file}.compiled`
// Only comments contain other characters than ASCII, so the code is the same, in half the memory.
const source = readFileSync(file, 'latin1')
const script = new vm.Script(source, {
  filename: file,
  cachedData: ifThere(() => readFileSync(kept)),
  importModuleDynamically: vm.constants.USE_MAIN_CONTEXT_DEFAULT_LOADER,
})
// V8 rejects the cache of a process with other flags.
if (!script.cachedDataRejected) process.on('exit', keep)
script.runInThisContext()(createRequire(file), { url: pathToFileURL(file).href })

function keep() {
  const candidates = Array.from({ length: maxWriters }, (_, index) => `${kept}-${index}`)
  if (!candidates.some(isMine)) return
  const data = script.createCachedData()
  if (data.length <= (ifThere(() => statSync(kept).size) ?? 0)) return
  const fresh = `${kept}-of-${process.pid}`
  writeFileSync(fresh, data)
  renameSync(fresh, kept)
}

/** Whether this process is the first to create the file. */
function isMine(path) {
  try {
    writeFileSync(path, '', { flag: 'wx' })
    return true
  } catch {
    return false
  }
}

function ifThere(read) {
  try {
    return read()
  } catch {
    return undefined
  }
}
