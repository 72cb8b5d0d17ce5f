/** `sandlot man`: the manual, for man(1): `sandlot man | man -l -`. */
import { addExamples, type Define, handleWith } from '../core/command.ts'
import { writeManual } from '../core/manual.ts'

export const define: Define = (command) => {
  command.addHelpText('after', '\nTo read it: sandlot man | man -l -')
  addExamples(command, 'sandlot man | man -l -')
  handleWith(command, async ({ output }) => {
    const manual = await writeManual()
    output.result({ format: 'man', manual }, manual)
  })
}
