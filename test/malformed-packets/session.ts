/** What the fuzzer, a program of JavaScript, needs of modules of TypeScript. */
export { ACCESS, DISPOSITION, SHARE, SmbClient } from '../../examples/managing-concurrency/smb-client.ts';
export { EmptyBody as echoBody } from '../../src/smb/wire/empty.ts';
