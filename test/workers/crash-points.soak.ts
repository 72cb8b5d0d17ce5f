/** Kills a worker at every crash point, with each driver. */
import { commandCrashPoints, podCrashPoints } from '../../workers/faults/crash-points.ts'
import { describeOnBothDriversAtOnce } from '../support/drivers.ts'
import { describeCrashes } from './crash-at.ts'
import { describeCommandCrashes } from './crash-command-at.ts'

describeOnBothDriversAtOnce('a worker is killed', (driver) => describeCrashes(driver, podCrashPoints))
describeOnBothDriversAtOnce('a worker is killed with a command', (driver) =>
  describeCommandCrashes(driver, commandCrashPoints),
)
