import { readdirSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { root } from './root.mjs'

/**
 * Returns the folders of the packages in a bundle, excluding any that esbuild dropped as unused.
 * @param {import('esbuild').Metafile} metafile
 * @returns {string[]} paths relative to the project root
 */
export function packagesIn({ outputs }) {
  const inputs = Object.values(outputs).flatMap((output) =>
    Object.keys(output.inputs).filter((path) => output.inputs[path].bytesInOutput > 0),
  )
  return [...new Set(inputs.map(packageOf).filter((folder) => folder !== undefined))].sort()
}

const packageOf = (file) => /^(?:.*\/)?node_modules\/(?:@[^/]+\/)?[^/]+(?=\/)/.exec(file)?.[0]

/** @param {string} folder */
export const readManifest = (folder) => JSON.parse(readFileSync(join(root, folder, 'package.json'), 'utf8'))

/**
 * Returns the contents of THIRD-PARTY.txt, with the licenses that must be distributed with a bundle.
 * @param {string} holder name of the bundled program, such as `The client`
 * @param {string[]} folders
 * @throws {Error} if a package's license text is unknown
 */
export const describeThirdParty = (holder, folders) =>
  `${holder} contains these packages, each under its own license.\n${folders.map(describe).join('')}`

function describe(folder) {
  const manifest = readManifest(folder)
  const { name, version, license } = manifest
  const texts = readdirSync(join(root, folder))
    .filter((file) => /^(licen[cs]e|notice|copying)/i.test(file))
    .map((file) => readFileSync(join(root, folder, file), 'utf8').trim())
  if (texts.length === 0) texts.push(standardLicense(manifest))
  return `\n${'='.repeat(80)}\n${name} ${version} (${license})\n\n${texts.join('\n\n')}\n`
}

/** Returns the text of the license named in package.json, for a package without a license file. */
function standardLicense({ name, license, author }) {
  const owner = author?.name ?? author ?? `the authors of ${name}`
  if (license === 'MIT') return `Copyright (c) ${owner}\n\n${mit}`
  if (license === 'Unlicense')
    return 'This is free and unencumbered software released into the public domain.'
  throw new Error(`${name} has no license file. Add the text of its license to scripts/third-party.mjs.`)
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
