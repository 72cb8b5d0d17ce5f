import { chosen, type Plan } from './plan.ts'

export const clientFaults = {
  'a client leaves': ({ recorder }, { target }) => {
    const request = chosen([...recorder.inFlight], target)
    return request && { target: 'client', act: async () => request.abort() }
  },
} satisfies Record<string, Plan>
