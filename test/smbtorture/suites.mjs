/** The suites of smbtorture for what this server implements, with the seconds that each may take. `fast`: `npm test` runs it. */

/** @typedef {{ name: string, seconds: number, fast?: true }} Suite */

/** @type {readonly Suite[]} */
export const suites = [
  { name: 'smb2.connect', seconds: 30, fast: true },
  { name: 'smb2.tcon', seconds: 30, fast: true },
  { name: 'smb2.session-id', seconds: 60, fast: true },
  { name: 'smb2.session', seconds: 180 },
  { name: 'smb2.credits', seconds: 120 },
  { name: 'smb2.compound', seconds: 120 },
  { name: 'smb2.compound_find', seconds: 180 },
  { name: 'smb2.create', seconds: 120 },
  { name: 'smb2.create_no_streams', seconds: 30, fast: true },
  { name: 'smb2.mkdir', seconds: 30, fast: true },
  { name: 'smb2.read', seconds: 60, fast: true },
  { name: 'smb2.rw', seconds: 60, fast: true },
  { name: 'smb2.getinfo', seconds: 60, fast: true },
  { name: 'smb2.setinfo', seconds: 60, fast: true },
  { name: 'smb2.dir', seconds: 400 },
  { name: 'smb2.rename', seconds: 120 },
  { name: 'smb2.winattr', seconds: 60, fast: true },
  { name: 'smb2.openattr', seconds: 60, fast: true },
  { name: 'smb2.charset', seconds: 60, fast: true },
  { name: 'smb2.fileid', seconds: 60, fast: true },
  { name: 'smb2.timestamps', seconds: 120 },
  { name: 'smb2.sdread', seconds: 30, fast: true },
  { name: 'smb2.sharemode', seconds: 120, fast: true },
  { name: 'smb2.deny', seconds: 180 },
  { name: 'smb2.delete-on-close-perms', seconds: 60, fast: true },
  { name: 'smb2.ioctl', seconds: 180 },
];
