/** The licences of the packages in a bundle, which must be shipped with it. */
import { readdirSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { root } from './root.mjs'

/**
 * @param {Iterable<string>} inputs the files of the bundle, relative to the root
 * @returns {string} a text that names each package and gives its licence
 * @throws {Error} when a package comes without one
 */
export function describeThirdParty(inputs) {
  const folders = new Set([...inputs].map(packageOf).filter((folder) => folder !== undefined))
  return `The client holds these packages, each under its own licence.\n${[...folders].sort().map(describe).join('')}`
}

const packageOf = (file) => /^(?:.*\/)?node_modules\/(?:@[^/]+\/)?[^/]+(?=\/)/.exec(file)?.[0]

function describe(folder) {
  const manifest = JSON.parse(readFileSync(join(root, folder, 'package.json'), 'utf8'))
  const { name, version, license } = manifest
  const texts = readdirSync(join(root, folder))
    .filter((file) => /^(licen[cs]e|notice|copying)/i.test(file))
    .map((file) => readFileSync(join(root, folder, file), 'utf8').trim())
  if (texts.length === 0) texts.push(named(manifest))
  return `\n${'='.repeat(80)}\n${name} ${version} (${license})\n\n${texts.join('\n\n')}\n`
}

/** For a package that names its licence and leaves out the text. */
function named({ name, license, author }) {
  const owner = author?.name ?? author
  if (license === 'MIT' && owner !== undefined) return `Copyright (c) ${owner}\n\n${mit}`
  throw new Error(`${name} in the client's bundle comes without a licence.`)
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
