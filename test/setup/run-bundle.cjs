/**
 * Runs a file of test/setup/bundle.ts, the first argument, with what V8 made of it in processes before: their functions
 * too, where Node's own compile cache keeps only the code at the top of a module.
 */
'use strict'
const { readFileSync, renameSync, statSync, writeFileSync } = require('node:fs')
const { createRequire } = require('node:module')
const { pathToFileURL } = require('node:url')
const vm = require('node:vm')

/** So many processes keep what they compiled: each starts with what one before it kept, and adds to it. */
const mostKeepers = 8

const file = process.argv[2]
const kept = `${file}.compiled`
// All that is not ASCII stands in comments, so this is the same code, in half the memory.
const source = readFileSync(file, 'latin1')
const script = new vm.Script(source, {
  filename: file,
  cachedData: ifThere(() => readFileSync(kept)),
  importModuleDynamically: vm.constants.USE_MAIN_CONTEXT_DEFAULT_LOADER,
})
// V8 takes nothing from a process with other flags.
if (!script.cachedDataRejected) process.on('exit', keep)
script.runInThisContext()(createRequire(file), { url: pathToFileURL(file).href })

function keep() {
  const turns = Array.from({ length: mostKeepers }, (_, index) => `${kept}-${index}`)
  if (!turns.some(isMine)) return
  const data = script.createCachedData()
  if (data.length <= (ifThere(() => statSync(kept).size) ?? 0)) return
  const fresh = `${kept}-of-${process.pid}`
  writeFileSync(fresh, data)
  renameSync(fresh, kept)
}

/** Of several processes one makes the file. */
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
