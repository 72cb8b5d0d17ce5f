/**
 * The software bill of materials of the image, in SPDX 2.3: npm's list of production dependencies, and the other parts.
 */
import { root } from '../root.mjs'
import { run } from '../services/run.ts'

/** A part of the image that is not a production dependency. */
export interface Part {
  name: string
  version: string
  /** An SPDX expression; undefined if only the image contains the licence. */
  licence: string | undefined
  /** Its package URL, which scanners search for. */
  purl: string
}

/** @param digest of the image's manifest, `sha256:…` */
export async function makeSbom(name: string, digest: string, created: Date, parts: readonly Part[]) {
  const npm = ['npm', 'sbom', '--omit=dev', '--omit=optional', '--package-lock-only', '--sbom-format=spdx']
  const document = JSON.parse(await run(npm, { cwd: root }))
  const [, checksumValue] = digest.split(':')
  // Reproducible for the same image.
  document.documentNamespace = `https://sandlot.dev/spdx/${name}/${checksumValue}`
  document.creationInfo.created = created.toISOString().replace('.000', '')
  const [image] = document.packages
  const checksums = [{ algorithm: 'SHA256', checksumValue }]
  Object.assign(image, { name, primaryPackagePurpose: 'CONTAINER', checksums, externalRefs: [] })
  for (const { name, version, licence, purl } of parts) {
    const id = `SPDXRef-Package-${name.replaceAll('+', '-')}`
    document.packages.push({
      ...{ SPDXID: id, name, versionInfo: version, downloadLocation: 'NOASSERTION', filesAnalyzed: false },
      licenseDeclared: licence ?? 'NOASSERTION',
      externalRefs: [{ referenceCategory: 'PACKAGE-MANAGER', referenceType: 'purl', referenceLocator: purl }],
    })
    document.relationships.push({
      ...{ spdxElementId: image.SPDXID, relationshipType: 'CONTAINS', relatedSpdxElement: id },
    })
  }
  return `${JSON.stringify(document, undefined, 2)}\n`
}
