/** Paths of the Blob service: /container/blob. */
import { decodePart, type ParsePath } from '../address.ts';

/** The name of a blob may contain slashes. */
export const parseBlobPath: ParsePath = (rest) => {
  if (rest === '') return { container: '', item: '', shape: '/' };
  const second = rest.indexOf('/', 1);
  const container = decodePart(second < 0 ? rest.slice(1) : rest.slice(1, second));
  const item = second < 0 ? '' : normalizeSlashes(decodePart(rest.slice(second + 1)));
  const shape = item !== '' ? '/{container}/{blob}' : container !== '' ? '/{container}' : '/';
  return { container, item, shape };
};

/** Azure treats a backslash in the name of a blob as a slash, and SDKs sign and list it so. */
export function normalizeSlashes(name: string): string {
  return name.includes('\\') ? name.replaceAll('\\', '/') : name;
}
