/** The state of a copy in headers and XML. */
import { formatRfc1123 } from '../base/time.ts';
import { escapeXml } from '../base/xml.ts';
import type { CopyState } from '../rules/copy-state.ts';

/** Their names in headers and in XML, in the order of a list. */
const FIELDS = [
  ['x-ms-copy-id', 'CopyId'],
  ['x-ms-copy-source', 'CopySource'],
  ['x-ms-copy-status', 'CopyStatus'],
  ['x-ms-copy-progress', 'CopyProgress'],
  ['x-ms-copy-completion-time', 'CopyCompletionTime'],
  ['x-ms-copy-status-description', 'CopyStatusDescription'],
] as const;

function copyFields({ id, source, status, copied, bytes, completed, description }: CopyState) {
  const completionTime = completed === undefined ? undefined : formatRfc1123(completed);
  return [id, source, status ?? 'success', `${copied ?? bytes}/${bytes}`, completionTime, description];
}

export function addCopyHeaders(headers: Record<string, string | number | undefined>, copy: CopyState): void {
  for (const [at, value] of copyFields(copy).entries()) headers[FIELDS[at]![0]] = value;
}

export function copyElements(copy: CopyState): string {
  return copyFields(copy)
    .map((value, at) => (value === undefined ? '' : `<${FIELDS[at]![1]}>${escapeXml(value)}</${FIELDS[at]![1]}>`))
    .join('');
}
