/** Server-sent events, whose data are one line for whoever reads them. */

/** What JSON leaves as it is and some readers take for the end of a line: NEL, LS and PS. */
const lineEnds = /[\u0085\u2028\u2029]/g

/** Of JSON text: the same value without a character that any reader takes for the end of a line. */
export const inOneLine = (json: string): string =>
  json.replace(lineEnds, (character) => `\\u${character.charCodeAt(0).toString(16).padStart(4, '0')}`)

/** @param id where a client that comes back goes on */
export const sentEvent = (id: string, name: string, data: object): string =>
  `id: ${id}\nevent: ${name}\ndata: ${inOneLine(JSON.stringify(data))}\n\n`
