/** The clipboard of the machine that the terminal is on, also from afar: OSC 52. */
export const copySequence = (text: string): string =>
  `\u001b]52;c;${Buffer.from(text).toString('base64')}\u0007`
