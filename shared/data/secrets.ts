/** What a secret's value is sealed for. */
export const secretSealContext = (secretId: string) => `secret ${secretId}`
