/** What a client can make the server hold. docs/adr/0037-smb.md has the reasons. */
export interface SmbLimits {
  /** Bytes of a message before the client has signed in: a NEGOTIATE or SESSION_SETUP is shorter. */
  readonly frameBytesBeforeSignIn: number;
  /** Of a transfer by READ or WRITE: its signature or encryption takes a few milliseconds of the event loop. */
  readonly transferBytes: number;
  /** Of a transfer by IOCTL, QUERY_DIRECTORY, QUERY_INFO and SET_INFO; as much as other servers offer. */
  readonly transactBytes: number;
  readonly signInMilliseconds: number;
  /** Between the first and the last byte of a message, and for a client that does not read its answers. */
  readonly stalledMilliseconds: number;
  /** Of a connection without a session. Others may be idle for ever, as mounts are. */
  readonly idleMilliseconds: number;
  readonly connections: number;
  readonly connectionsPerAddressBeforeSignIn: number;
  readonly sessionsPerConnection: number;
  readonly treesPerSession: number;
  readonly opensPerSession: number;
  readonly credits: number;
  readonly compoundMessages: number;
  /** Requests of one connection that run at once; the socket is not read while there are more. */
  readonly runningRequests: number;
  /** Requests of one connection that have been answered by STATUS_PENDING. */
  readonly asyncRequests: number;
  /** A request that has run for this time is answered by STATUS_PENDING at the next look, which comes once a second. */
  readonly interimMilliseconds: number;
  /** Bytes of running requests and unsent answers of one connection; the socket is not read while there are more. */
  readonly outstandingBytes: number;
  /** A wrong password is answered after this time, and of one address one is tried in this time. */
  readonly wrongPasswordMilliseconds: number;
  /** Passwords that an address can try at once, before it has to wait. */
  readonly wrongPasswordsAtOnce: number;
  readonly channelsPerSession: number;
}

const KIB = 1024;
const MIB = 1024 * KIB;

export const smbLimits: SmbLimits = {
  frameBytesBeforeSignIn: 64 * KIB,
  transferBytes: MIB,
  transactBytes: 8 * MIB,
  signInMilliseconds: 30_000,
  stalledMilliseconds: 60_000,
  idleMilliseconds: 60_000,
  connections: 1_000,
  connectionsPerAddressBeforeSignIn: 100,
  sessionsPerConnection: 64,
  treesPerSession: 256,
  opensPerSession: 16_384,
  credits: 8_192,
  compoundMessages: 64,
  runningRequests: 256,
  asyncRequests: 512,
  interimMilliseconds: 500,
  outstandingBytes: 32 * MIB,
  wrongPasswordMilliseconds: 1_000,
  wrongPasswordsAtOnce: 10,
  channelsPerSession: 32,
};
