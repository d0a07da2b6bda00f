/** CORS rules in the service properties: XML to and from CorsRule. The limits are those of Microsoft's reference. */
import { escapeXml, type XmlElement } from '../../base/xml.ts';
import type { CorsRule } from '../../rules/cors.ts';
import { CORS_METHODS } from '../../services/common/cors.ts';
import {
  checkElementName,
  childrenByName,
  invalidNode,
  invalidValue,
  parseIntegerElement,
  requiredChild,
} from './xml-nodes.ts';

const RULES_MAX = 5;
/** Limit on all values together, without the tags. */
const BYTES_MAX = 2 * 1024;
const ORIGINS_MAX = 64;
const LITERAL_HEADERS_MAX = 64;
const PREFIXED_HEADERS_MAX = 2;
const LENGTH_MAX = 256;
const AGE_MAX = 2 ** 31 - 1;

const ORIGIN = /^(?:\*|[^\s*]+:\/\/\*\.[^\s*]+|[^\s*]+)$/;
/** An HTTP token, optionally with a star at its end. */
const HEADER_NAME = /^(?:[!#$%&'+\-.^_`|~\w]+\*?|\*)$/;

export function parseCorsRules(cors: XmlElement): CorsRule[] {
  for (const child of cors.children) checkElementName(child, 'CorsRule');
  if (cors.children.length > RULES_MAX) throw invalidNode(cors, `There are more than ${RULES_MAX} rules.`);
  const rules = cors.children.map(parseRule);
  if (rulesBytes(rules) > BYTES_MAX) throw invalidNode(cors, `The rules have more than ${BYTES_MAX} bytes.`);
  return rules;
}

export function corsRulesXml(rules: readonly CorsRule[]): string {
  if (rules.length === 0) return '<Cors />';
  const list = (name: string, values: readonly string[]) =>
    values.length === 0 ? `<${name} />` : `<${name}>${escapeXml(values.join(','))}</${name}>`;
  let xml = '';
  for (const rule of rules) {
    xml +=
      `<CorsRule>${list('AllowedMethods', rule.allowedMethods)}${list('AllowedOrigins', rule.allowedOrigins)}` +
      `${list('AllowedHeaders', rule.allowedHeaders)}${list('ExposedHeaders', rule.exposedHeaders)}` +
      `<MaxAgeInSeconds>${rule.maxAgeSeconds}</MaxAgeInSeconds></CorsRule>`;
  }
  return `<Cors>${xml}</Cors>`;
}

const NAMES = ['AllowedOrigins', 'AllowedMethods', 'AllowedHeaders', 'ExposedHeaders', 'MaxAgeInSeconds'];

function parseRule(rule: XmlElement): CorsRule {
  const parts = childrenByName(rule, NAMES);
  const age = requiredChild(rule, 'MaxAgeInSeconds');
  const maxAgeSeconds = parseIntegerElement(age);
  if (maxAgeSeconds < 0 || maxAgeSeconds > AGE_MAX) throw invalidValue(age, `It is not between 0 and ${AGE_MAX}.`);
  return {
    allowedOrigins: parseOrigins(requiredChild(rule, 'AllowedOrigins')),
    allowedMethods: parseMethods(requiredChild(rule, 'AllowedMethods')),
    allowedHeaders: parseHeaderNames(parts.get('AllowedHeaders')),
    exposedHeaders: parseHeaderNames(parts.get('ExposedHeaders')),
    maxAgeSeconds,
  };
}

function parseOrigins(element: XmlElement): string[] {
  const origins = splitValues(element);
  if (origins.length === 0) throw invalidValue(element, 'There is no origin.');
  if (origins.length > ORIGINS_MAX) throw invalidNode(element, `There are more than ${ORIGINS_MAX} origins.`);
  if (!origins.every((origin) => ORIGIN.test(origin))) {
    throw invalidValue(element, 'A * stands alone or for what is below a domain, as in https://*.example.com.');
  }
  return origins;
}

function parseMethods(element: XmlElement): string[] {
  const methods = splitValues(element).map((method) => method.toUpperCase());
  if (methods.length === 0) throw invalidValue(element, 'There is no method.');
  const unknown = methods.find((method) => !CORS_METHODS.includes(method));
  if (unknown !== undefined) throw invalidValue(element, `${unknown} is not a method that can be allowed.`);
  return methods;
}

/** Literal names first: the order in which Azure returns them. */
function parseHeaderNames(element: XmlElement | undefined): string[] {
  if (!element) return [];
  const names = splitValues(element);
  if (!names.every((name) => HEADER_NAME.test(name))) throw invalidValue(element, 'A name is not that of a header.');
  const prefixed = names.filter((name) => name.endsWith('*'));
  const literal = names.filter((name) => !name.endsWith('*'));
  if (prefixed.length > PREFIXED_HEADERS_MAX) {
    throw invalidNode(element, `There are more than ${PREFIXED_HEADERS_MAX} names that end in *.`);
  }
  if (literal.length > LITERAL_HEADERS_MAX) {
    throw invalidNode(element, `There are more than ${LITERAL_HEADERS_MAX} names of headers.`);
  }
  return [...literal, ...prefixed];
}

function splitValues(element: XmlElement): string[] {
  const values = element.text.split(',').flatMap((value) => value.trim() || []);
  if (values.some((value) => value.length > LENGTH_MAX)) {
    throw invalidNode(element, `A value has more than ${LENGTH_MAX} characters.`);
  }
  return values;
}

function rulesBytes(rules: readonly CorsRule[]): number {
  const values = rules.flatMap((rule) => [
    rule.allowedOrigins,
    rule.allowedMethods,
    rule.allowedHeaders,
    rule.exposedHeaders,
    rule.maxAgeSeconds,
  ]);
  return values.reduce((sum: number, value) => sum + Buffer.byteLength(value.toString()), 0);
}
