/** `sandlot man`: the manual, for man(1): `sandlot man | man -l -`. */
import { defineCommand } from '../core/command.ts'
import { writeManual } from '../core/manual.ts'

export const define = defineCommand({
  notes: '\nTo read it: sandlot man | man -l -',
  examples: ['sandlot man | man -l -'],
  handle: async ({ output, describeProgram }) => {
    const manual = await writeManual(describeProgram())
    output.result({ format: 'man', manual }, manual)
  },
})
