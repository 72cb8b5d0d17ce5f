import { chosen, type Plan } from './plan.ts'

export const clientFaults = {
  'a client leaves': ({ ledger }, { target }) => {
    const flight = chosen([...ledger.flights], target)
    return flight && { target: 'client', act: async () => flight.abort() }
  },
} satisfies Record<string, Plan>
