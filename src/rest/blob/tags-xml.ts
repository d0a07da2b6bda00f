/** Tags of a blob: XML to and from pairs. */
import { escapeXml, type XmlElement } from '../../base/xml.ts';
import type { Tag, Tags } from '../../rules/tags.ts';
import { checkElementName, childrenByName, requiredChild } from '../xml/xml-nodes.ts';

export function parseTagsXml(root: XmlElement): Tags {
  childrenByName(root, ['TagSet']);
  return requiredChild(root, 'TagSet').children.map((tag): Tag => {
    checkElementName(tag, 'Tag');
    childrenByName(tag, ['Key', 'Value']);
    return [requiredChild(tag, 'Key').text, requiredChild(tag, 'Value').text];
  });
}

export function tagsElement(tags: Tags): string {
  let xml = '';
  for (const [key, value] of tags) xml += `<Tag><Key>${escapeXml(key)}</Key><Value>${escapeXml(value)}</Value></Tag>`;
  return `<Tags>${xml === '' ? '<TagSet />' : `<TagSet>${xml}</TagSet>`}</Tags>`;
}
