/** Replaces the package's type declarations, which list exports that do not exist at run time. */
declare module 'scrypt-kdf' {
  const Scrypt: {
    kdf(passphrase: string, params: { logN: number }): Promise<Uint8Array>
    verify(key: Uint8Array, passphrase: string): Promise<boolean>
  }
  export default Scrypt
}
