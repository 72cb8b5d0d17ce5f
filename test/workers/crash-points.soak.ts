/** A worker is killed at every crash point, on each driver. */
import { crashPoints } from '../../workers/pods/crash-points.ts'
import { describeOnBothDriversAtOnce } from '../support/drivers.ts'
import { describeCrashes } from './crash-at.ts'

describeOnBothDriversAtOnce('a worker is killed', (driver) => describeCrashes(driver, crashPoints))
