/** Tags as the header x-ms-tags has them, which is how services take them. */
export function formatTagsHeader(tags: readonly (readonly [key: string, value: string])[]): string {
  return tags.map((tag) => tag.map(encodeURIComponent).join('=')).join('&');
}
