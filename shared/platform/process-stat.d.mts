export declare function readStat(pid: number): string[] | undefined
