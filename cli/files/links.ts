/** Symbolic links of an archive that may come from anybody. */
import { lstatSync, mkdirSync, rmSync, symlinkSync } from 'node:fs'
import { dirname, join, posix } from 'node:path'

export interface ArchivedLink {
  /** Where it is, relative to the folder. */
  path: string
  target: string
}

/**
 * Makes the links below a folder. Everything else must be in place, so that nothing is written through one.
 * @returns those that were not made, each with why
 */
export const makeLinks = (folder: string, links: readonly ArchivedLink[]): string[] =>
  links.flatMap((link) => {
    try {
      makeLink(folder, link)
      return []
    } catch (error) {
      return [`${link.path}: ${(error as Error).message}`]
    }
  })

function makeLink(folder: string, { path: name, target }: ArchivedLink): void {
  // Without dots, so that what is above it is what its name says.
  const path = posix.resolve('/', name).slice(1)
  if (leadsOut(name) || !staysInside(path, target))
    throw new Error(`a link to ${target} leads out of the folder`)
  const parents = posix.dirname(path).split('/')
  const ways = parents.map((_, index) => join(folder, ...parents.slice(0, index + 1)))
  if (ways.some(isLink)) throw new Error('its folder is a link')
  const local = join(folder, path)
  mkdirSync(dirname(local), { recursive: true })
  rmSync(local, { force: true })
  symlinkSync(target, local)
}

const isLink = (path: string): boolean =>
  lstatSync(path, { throwIfNoEntry: false })?.isSymbolicLink() ?? false

/**
 * Whether a link leads into the folder, also when parts of its target are such links themselves. So `..` may stand at
 * the start of a target alone: behind a link's name it would lead to where nobody has looked.
 */
function staysInside(path: string, target: string): boolean {
  const climb = /^(?:\.{1,2}(?:\/+|$))*/.exec(target)![0]
  const reached = posix.join(posix.dirname(path), climb)
  return ![reached, target.slice(climb.length)].some(leadsOut)
}

const leadsOut = (way: string): boolean => posix.isAbsolute(way) || way.split('/').includes('..')
