/** The licences of the packages in a bundle, which must be shipped with it. */
import { readdirSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { root } from './root.mjs'

/**
 * @param {import('esbuild').Metafile} metafile of a bundle
 * @returns {string[]} the folders of the packages that are in it after unused code was dropped, relative to the root
 */
export function packagesIn({ outputs }) {
  const inputs = Object.values(outputs).flatMap((output) =>
    Object.keys(output.inputs).filter((path) => output.inputs[path].bytesInOutput > 0),
  )
  return [...new Set(inputs.map(packageOf).filter((folder) => folder !== undefined))].sort()
}

const packageOf = (file) => /^(?:.*\/)?node_modules\/(?:@[^/]+\/)?[^/]+(?=\/)/.exec(file)?.[0]

/** @param {string} folder of a package */
export const readManifest = (folder) => JSON.parse(readFileSync(join(root, folder, 'package.json'), 'utf8'))

/**
 * @param {string} holder such as `The client`
 * @param {string[]} folders of the packages that are in it
 * @returns {string} a text that names each package and gives its licence
 * @throws {Error} if a package has none
 */
export const describeThirdParty = (holder, folders) =>
  `${holder} contains these packages, each under its own licence.\n${folders.map(describe).join('')}`

function describe(folder) {
  const manifest = readManifest(folder)
  const { name, version, license } = manifest
  const texts = readdirSync(join(root, folder))
    .filter((file) => /^(licen[cs]e|notice|copying)/i.test(file))
    .map((file) => readFileSync(join(root, folder, file), 'utf8').trim())
  if (texts.length === 0) texts.push(named(manifest))
  return `\n${'='.repeat(80)}\n${name} ${version} (${license})\n\n${texts.join('\n\n')}\n`
}

/** For a package that names its licence without including the text. */
function named({ name, license, author }) {
  const owner = author?.name ?? author ?? `the authors of ${name}`
  if (license === 'MIT') return `Copyright (c) ${owner}\n\n${mit}`
  if (license === 'Unlicense')
    return 'This is free and unencumbered software released into the public domain.'
  throw new Error(`${name} has no licence, but its code would be shipped.`)
}

const mit = `\
Permission is hereby granted, free of charge, to any person obtaining a copy
of this software and associated documentation files (the "Software"), to deal
in the Software without restriction, including without limitation the rights
to use, copy, modify, merge, publish, distribute, sublicense, and/or sell
copies of the Software, and to permit persons to whom the Software is
furnished to do so, subject to the following conditions:

The above copyright notice and this permission notice shall be included in all
copies or substantial portions of the Software.

THE SOFTWARE IS PROVIDED "AS IS", WITHOUT WARRANTY OF ANY KIND, EXPRESS OR
IMPLIED, INCLUDING BUT NOT LIMITED TO THE WARRANTIES OF MERCHANTABILITY,
FITNESS FOR A PARTICULAR PURPOSE AND NONINFRINGEMENT. IN NO EVENT SHALL THE
AUTHORS OR COPYRIGHT HOLDERS BE LIABLE FOR ANY CLAIM, DAMAGES OR OTHER
LIABILITY, WHETHER IN AN ACTION OF CONTRACT, TORT OR OTHERWISE, ARISING FROM,
OUT OF OR IN CONNECTION WITH THE SOFTWARE OR THE USE OR OTHER DEALINGS IN THE
SOFTWARE.`
