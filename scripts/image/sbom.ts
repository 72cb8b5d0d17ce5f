/**
 * Generates an SPDX 2.3 SBOM of the image: the production npm dependencies, plus the other components, such
 * as Node and the C library.
 */
import { root } from '../root.mjs'
import { run } from '../services/run.ts'

/** A component of the image that is not an npm dependency, such as Node or the C library. */
export interface Part {
  name: string
  version: string
  /** SPDX license expression, or undefined if only a license file is known. */
  licence: string | undefined
  /** Package URL (purl) for vulnerability scanners. */
  purl: string
}

/** @param digest digest of the image's manifest, such as `sha256:…` */
export async function makeSbom(name: string, digest: string, created: Date, parts: readonly Part[]) {
  const npm = ['npm', 'sbom', '--omit=dev', '--omit=optional', '--package-lock-only', '--sbom-format=spdx']
  const document = JSON.parse(await run(npm, { cwd: root }))
  const [, checksumValue] = digest.split(':')
  // The same image always has the same SBOM.
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
