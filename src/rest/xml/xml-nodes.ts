/** Parses and validates elements of XML request bodies. */
import { findChild, type XmlElement } from '../../base/xml.ts';
import { commonErrors, errorFactory, type StorageError } from '../../services/common/errors.ts';
import { invalidXml } from '../params.ts';

const fail = errorFactory(commonErrors);

/** An element is invalid as a whole. Azure reports the position of its end tag. */
export function invalidNode({ endLine, endColumn }: XmlElement, reason: string): StorageError {
  return invalidXml(endLine, endColumn, reason);
}

export function invalidValue({ name, text }: XmlElement, reason: string): StorageError {
  return fail('InvalidXmlNodeValue', { XmlNodeName: name, XmlNodeValue: text, Reason: reason });
}

/** Throws unless the element has one of these names. */
export function checkElementName(element: XmlElement, ...names: string[]): void {
  if (names.includes(element.name)) return;
  throw invalidXml(element.line, element.column, `The element ${element.name} is not expected here.`);
}

/** The children by name. Throws for other names and for duplicates. */
export function childrenByName(parent: XmlElement, names: readonly string[]): ReadonlyMap<string, XmlElement> {
  const parts = new Map<string, XmlElement>();
  for (const child of parent.children) {
    checkElementName(child, ...names);
    if (parts.has(child.name)) throw invalidXml(child.line, child.column, `The element ${child.name} is there twice.`);
    parts.set(child.name, child);
  }
  return parts;
}

export function requiredChild(parent: XmlElement, name: string): XmlElement {
  const child = findChild(parent, name);
  if (!child) throw fail('MissingRequiredXmlNode', { XmlNodeName: name });
  return child;
}

export function parseBooleanElement(element: XmlElement): boolean {
  const text = element.text.trim().toLowerCase();
  if (text !== 'true' && text !== 'false') throw invalidValue(element, 'It is neither true nor false.');
  return text === 'true';
}

export function parseIntegerElement(element: XmlElement): number {
  const text = element.text.trim();
  if (!/^-?\d{1,15}$/.test(text)) throw invalidValue(element, 'It is not an integer.');
  return Number(text);
}
