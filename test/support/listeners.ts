/** Programs that listen inside a sandbox, in any of the images. */

/**
 * For one line of a shell: what comes is sent back, by a process of its own for each connection. It listens on the
 * loopback interface alone, except in busybox, which knows no addresses.
 */
export const echoOn = (port: number): string =>
  `if command -v perl >/dev/null; then exec perl -MIO::Socket::INET -e '${perlEcho}' ${port}; ` +
  `else exec nc -ll -p ${port} -e cat; fi`

/** Ends the connection behind "quit". */
const perlEcho = [
  '$SIG{CHLD} = "IGNORE"',
  '$s = IO::Socket::INET->new(LocalAddr => "127.0.0.1", LocalPort => shift, Listen => 64, ReuseAddr => 1) or die',
  'while (my $c = $s->accept) { next if fork; close $s',
  '  while (sysread($c, $b, 65536)) { syswrite($c, $b); last if $b =~ /quit$/ } exit }',
].join(';\n')

/** For one connection, which it ends behind so many bytes. */
export const echoOnce = (port: number, bytes: number): string =>
  `if command -v perl >/dev/null; then exec perl -MIO::Socket::INET -e '${perlOnce}' ${port} ${bytes}; ` +
  `else exec nc -l -p ${port} -e head -c ${bytes}; fi`

const perlOnce = [
  '$s = IO::Socket::INET->new(LocalAddr => "127.0.0.1", LocalPort => shift, Listen => 1, ReuseAddr => 1) or die',
  '$c = $s->accept; read($c, $b, shift); print $c $b',
].join(';\n')

/** Prints a line once somebody listens at the port, for a shell that has no way to ask. */
export const untilListening = (port: number): string =>
  `hex=$(printf %04X ${port}); until cat /proc/net/tcp /proc/net/tcp6 2>/dev/null | grep -qi ":$hex 0*:0000 0A"; ` +
  'do sleep 0.05; done; echo listening'
