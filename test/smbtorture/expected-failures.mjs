/** Subtests that Holdfast need not pass, by the reason. Each that passes nevertheless has to leave the list. */

/** Of smb2.session: each opens a file with a batch oplock first. */
const sessionTests = [
  'bind1',
  'bind_invalid_auth',
  ...['smb210', 'smb2to3', 'smb3encGtoC', 'smb3signC30toG', 'smb3signCtoG', 'smb3signCtoH', 'smb3signGtoC30'].flatMap(
    binds,
  ),
  ...['smb3signGtoC', 'smb3signGtoH2X', 'smb3signGtoH', 'smb3signH2XtoG', 'smb3signHtoC', 'smb3signHtoG'].flatMap(
    binds,
  ),
  ...['smb3sneCtoG', 'smb3sneGtoC', 'smb3sneGtoH', 'smb3sneHtoG', 'smb3to2', 'smb3to3'].flatMap(binds),
  ...['reauth1', 'reauth6', 'reconnect1', 'reconnect2'],
];
const anonymousTests = ['reauth2', 'reauth3', 'reauth4', 'reauth5'];
const notifyingTests = [
  ...['encryption-aes-128-ccm', 'encryption-aes-128-gcm', 'encryption-aes-256-ccm', 'encryption-aes-256-gcm'],
  ...['signing-aes-128-cmac', 'signing-aes-128-gmac', 'signing-hmac-sha-256'],
];

/** With the same and with another client GUID. */
function binds(/** @type {string} */ name) {
  return [`bind_negative_${name}d`, `bind_negative_${name}s`];
}

/** @type {Readonly<Record<string, readonly string[]>>} */
export const expectedFailures = {
  'needs byte-range locks': [
    'smb2.create.brlocked',
    'smb2.ioctl.copy_chunk_dest_lock',
    'smb2.ioctl.copy_chunk_src_lock',
    'smb2.ioctl.sparse_lock',
  ],
  'needs oplocks': sessionTests.map((name) => `smb2.session.${name}`),
  'needs oplocks and an anonymous session': anonymousTests.map((name) => `smb2.session.${name}`),
  'needs oplocks and change notification': notifyingTests.map((name) => `smb2.session.${name}`),
  'needs change notification': ['smb2.compound.interim1', 'smb2.compound.interim2'],
  "needs an ACL that binds the key's user, who is a superuser": [
    'smb2.compound.related4',
    'smb2.compound.related7',
    'smb2.create.nulldacl',
    'smb2.delete-on-close-perms.CREATE_IF Existing',
    'smb2.delete-on-close-perms.OVERWRITE_IF Existing',
  ],
  // All that comes before the stream passes; src/smb/handlers/files.test.ts has the padding of answers.
  'creates a stream, which Azure Files does not have, and which smb2.create_no_streams wants refused': [
    'smb2.compound.compound-padding',
    'smb2.fileid',
    'smb2.fileid.fileid-dir',
    'smb2.getinfo.complex',
    'smb2.getinfo.normalized',
    'smb2.ioctl.copy-chunk streams',
  ],
  // src/smb/handlers/information-classes.test.ts has the times that smb2.setinfo sets, and the room that qfile_buffercheck offers.
  'sets extended attributes, which Azure Files does not have, and reads them again': [
    'smb2.getinfo.getinfo_access',
    'smb2.getinfo.qfile_buffercheck',
    'smb2.setinfo',
  ],
  'asks for the quotas of users, which Azure Files does not have': [
    'smb2.create.quota-fake-file',
    'smb2.getinfo.fsinfo',
    'smb2.getinfo.qfs_buffercheck',
  ],
  'wants an open for SYNCHRONIZE alone refused, which smb2.getinfo.getinfo_access wants granted': [
    'smb2.create.gentest',
  ],
  'cannot convert the name that it wants to send': ['smb2.charset.Testing partial surrogate'],
  'sends a control that Samba has for this test alone': ['smb2.ioctl.bug14769'],
  'speaks dialect 2.0.2, which Azure Files refuses': ['smb2.session.bind_negative_smb202'],
};

/** @type {ReadonlyMap<string, string>} */
export const reasonsByTest = new Map(
  Object.entries(expectedFailures).flatMap(([reason, names]) => names.map((name) => [name, reason])),
);
