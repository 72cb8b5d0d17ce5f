/** What a secret's value is sealed for. */
export const secretPlace = (secretId: string) => `secret ${secretId}`
