/** The package's own types name exports that do not exist at run time. This is the only one that does. */
declare module 'scrypt-kdf' {
  const Scrypt: {
    kdf(passphrase: string, params: { logN: number }): Promise<Uint8Array>
    verify(key: Uint8Array, passphrase: string): Promise<boolean>
  }
  export default Scrypt
}
