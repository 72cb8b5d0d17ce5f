/** The list of what is in the image, in SPDX 2.3. */

/** A package of somebody else's that is in the image. */
export interface Part {
  name: string
  version: string
  /** An SPDX expression; undefined where it stands in the image only. */
  licence: string | undefined
  /** Its package URL, which scanners look for. */
  purl: string
}

export interface Subject {
  name: string
  version: string
  /** `sha256:…` of its manifest. */
  digest: string
  created: Date
}

const none = 'NOASSERTION'

const describePackage = (SPDXID: string, { name, version, licence = none }: Omit<Part, 'purl'>) => ({
  SPDXID,
  name,
  versionInfo: version,
  downloadLocation: none,
  filesAnalyzed: false,
  licenseConcluded: none,
  licenseDeclared: licence,
  copyrightText: none,
})

export function describeParts({ name, version, digest, created }: Subject, parts: readonly Part[]): string {
  const [algorithm, sum] = digest.split(':')
  const image = {
    ...describePackage('SPDXRef-image', { name, version, licence: 'Apache-2.0' }),
    checksums: [{ algorithm: algorithm!.toUpperCase(), checksumValue: sum }],
    primaryPackagePurpose: 'CONTAINER',
  }
  const packages = parts.map((part, index) => ({
    ...describePackage(`SPDXRef-part-${index + 1}`, part),
    externalRefs: [
      { referenceCategory: 'PACKAGE-MANAGER', referenceType: 'purl', referenceLocator: part.purl },
    ],
  }))
  const relate = (from: string, relationshipType: string, to: string) => ({
    ...{ spdxElementId: from, relationshipType, relatedSpdxElement: to },
  })
  const document = {
    spdxVersion: 'SPDX-2.3',
    dataLicense: 'CC0-1.0',
    SPDXID: 'SPDXRef-DOCUMENT',
    name: `${name}-${version}`,
    // Unlike any other document's, and the same for the same image.
    documentNamespace: `https://sandlot.dev/spdx/${name}/${sum}`,
    creationInfo: { created: created.toISOString().replace('.000', ''), creators: ['Tool: sandlot-image'] },
    packages: [image, ...packages],
    relationships: [
      relate('SPDXRef-DOCUMENT', 'DESCRIBES', image.SPDXID),
      ...packages.map(({ SPDXID }) => relate(image.SPDXID, 'CONTAINS', SPDXID)),
    ],
  }
  return `${JSON.stringify(document, undefined, 2)}\n`
}
