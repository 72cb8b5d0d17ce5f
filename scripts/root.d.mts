/** The folder of the clone. */
export const root: string
/** Where Node keeps what it compiled (NODE_COMPILE_CACHE): a process then starts in half the time. */
export const compileCache: string
