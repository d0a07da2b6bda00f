/** The part of docs/operations.md about SMB, from the tables in src/smb. */
import { commands } from '../build/smb/commands.js';
import { CREATE_CONTEXTS } from '../build/smb/handlers/create-contexts.js';
import { connectionFsctls, fileFsctls, pipeFsctls } from '../build/smb/handlers/ioctl.js';
import { notSupported } from '../build/smb/handlers/not-supported.js';
import { oplockBreak } from '../build/smb/handlers/oplock-break.js';
import { fileInfoClasses } from '../build/smb/handlers/query-file-info.js';
import { fsInfoClasses } from '../build/smb/handlers/query-fs-info.js';
import { setClasses } from '../build/smb/handlers/set-info.js';
import * as directoryInfo from '../build/smb/wire/directory-info.js';
import { DIRECTORY_LEVELS } from '../build/smb/wire/directory-info.js';
import { FILE_INFO } from '../build/smb/wire/file-info.js';
import { FS_INFO } from '../build/smb/wire/fs-info.js';
import { FSCTL } from '../build/smb/wire/ioctl.js';

export function smbSection() {
  return `# SMB

Dialects 2.1, 3.0, 3.0.2 and 3.1.1. A status stands where a client's request is understood and refused; what is not listed is answered with STATUS_INVALID_INFO_CLASS, STATUS_INVALID_DEVICE_REQUEST or, for a create
context, ignored.

## SMB: commands

| command | code | on shares | on IPC$ |
|---|---|---|---|
${commandLines()}

## SMB: information classes of files

| class | number | QUERY_INFO | SET_INFO |
|---|---|---|---|
${fileClassLines()}

## SMB: information classes of file systems

| class | number | QUERY_INFO |
|---|---|---|
${fsClassLines()}

## SMB: information classes of QUERY_DIRECTORY

| class | number |
|---|---|
${directoryLines()}

## SMB: file system controls

| control | code | on |
|---|---|---|
${fsctlLines()}

## SMB: create contexts

| context | |
|---|---|
${Object.entries(CREATE_CONTEXTS)
  .map(([name, what]) => `| ${name} | ${what} |`)
  .join('\n')}
`;
}

/** Handlers that understand their command, and can only refuse it. */
const refusals = new Map([
  [notSupported, 'STATUS_NOT_SUPPORTED'],
  [oplockBreak, 'STATUS_INVALID_DEVICE_STATE'],
]);

function commandLines() {
  const rows = Object.entries(commands).sort(([, one], [, other]) => one.code - other.code);
  return rows
    .map(([name, row]) => {
      const isShared = row.needs === 'connection' || row.needs === 'session';
      const cell = (handler) => refusals.get(handler) ?? (handler ? 'yes' : '');
      return `| ${snake(name)} | ${row.code} | ${cell(isShared ? row.run : row.disk)} | ${cell(isShared ? row.run : row.pipe)} |`;
    })
    .join('\n');
}

function fileClassLines() {
  const cell = (found) => (found === undefined ? '' : typeof found === 'string' ? `STATUS_${found}` : 'yes');
  return Object.entries(FILE_INFO)
    .filter(([, number]) => fileInfoClasses.has(number) || setClasses.has(number))
    .map(([name, number]) => {
      const cells = [cell(fileInfoClasses.get(number)), cell(setClasses.get(number))];
      return `| ${className('File', name)} | ${number} | ${cells.join(' | ')} |`;
    })
    .join('\n');
}

function fsClassLines() {
  return Object.entries(FS_INFO)
    .filter(([, number]) => fsInfoClasses.has(number))
    .map(([name, number]) => {
      const found = fsInfoClasses.get(number);
      return `| ${className('FileFs', name)} | ${number} | ${typeof found === 'string' ? `STATUS_${found}` : 'yes'} |`;
    })
    .join('\n');
}

/** The structs are exported under Microsoft's names. */
function directoryLines() {
  return [...DIRECTORY_LEVELS]
    .map(([number, level]) => {
      const name = Object.entries(directoryInfo).find(([, value]) => value === level)?.[0];
      return `| ${name} | ${number} |`;
    })
    .join('\n');
}

function fsctlLines() {
  const tables = [
    [connectionFsctls, 'connections and trees'],
    [fileFsctls, 'files and directories'],
    [pipeFsctls, 'pipes'],
  ];
  return Object.entries(FSCTL)
    .flatMap(([name, code]) => {
      const on = tables.find(([table]) => table[code])?.[1];
      return on ? [`| FSCTL_${snake(name)} | 0x${code.toString(16).padStart(8, '0')} | ${on} |`] : [];
    })
    .join('\n');
}

/** sessionSetup: SESSION_SETUP */
const snake = (name) =>
  name
    .replace(/[A-Z]/g, (letter) => `_${letter}`)
    .toUpperCase()
    .replace('COPY_CHUNK', 'COPYCHUNK');

/** dispositionEx: FileDispositionInformationEx */
function className(prefix, name) {
  const [, stem = '', extended = ''] = /^(.*?)(Ex)?$/.exec(name) ?? [];
  return `${prefix}${stem.charAt(0).toUpperCase()}${stem.slice(1)}Information${extended}`;
}
