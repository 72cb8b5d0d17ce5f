/** Shell code that echoes all bytes. Listens on the loopback interface, except in busybox, whose nc cannot. */
export const echoOn = (port: number): string =>
  `if command -v perl >/dev/null; then exec perl -MIO::Socket::INET -e '${perlEcho}' ${port}; ` +
  `else exec nc -ll -p ${port} -e cat; fi`

/** Perl program that echoes all bytes and closes the connection after "quit". */
const perlEcho = [
  '$SIG{CHLD} = "IGNORE"',
  '$s = IO::Socket::INET->new(LocalAddr => "127.0.0.1", LocalPort => shift, Listen => 64, ReuseAddr => 1) or die',
  'while (my $c = $s->accept) { next if fork; close $s',
  '  while (sysread($c, $b, 65536)) { syswrite($c, $b); last if $b =~ /quit$/ } exit }',
].join(';\n')

/** Shell code that serves one connection, and closes it after `bytes` bytes. */
export const echoOnce = (port: number, bytes: number): string =>
  `if command -v perl >/dev/null; then exec perl -MIO::Socket::INET -e '${perlOnce}' ${port} ${bytes}; ` +
  `else exec nc -l -p ${port} -e head -c ${bytes}; fi`

const perlOnce = [
  '$s = IO::Socket::INET->new(LocalAddr => "127.0.0.1", LocalPort => shift, Listen => 1, ReuseAddr => 1) or die',
  '$c = $s->accept; read($c, $b, shift); print $c $b',
].join(';\n')

/** Shell code that prints a line once a process listens on the port. */
export const untilListening = (port: number): string =>
  `hex=$(printf %04X ${port}); until cat /proc/net/tcp /proc/net/tcp6 2>/dev/null | grep -qi ":$hex 0*:0000 0A"; ` +
  'do sleep 0.05; done; echo listening'
