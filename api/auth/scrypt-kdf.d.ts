/** The package's own types name exports that do not exist when it runs: it has this one alone. */
declare module 'scrypt-kdf' {
  const Scrypt: {
    kdf(passphrase: string, params: { logN: number }): Promise<Uint8Array>
    verify(key: Uint8Array, passphrase: string): Promise<boolean>
  }
  export default Scrypt
}
