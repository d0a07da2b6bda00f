import { describe, expect, it } from 'vitest';
import { negotiateFormat, parsePreference } from './replies.ts';

const [no, minimal, full] = (['nometadata', 'minimalmetadata', 'fullmetadata'] as const).map((level) => ({ level }));

describe('The form of an answer', () => {
  it.each([
    [undefined, undefined, minimal],
    ['', undefined, minimal],
    ['*/*', undefined, minimal],
    ['application/*', undefined, minimal],
    ['application/json', undefined, minimal],
    ['application/json;odata=nometadata', undefined, no],
    ['application/json; odata=minimalmetadata; streaming=true', undefined, minimal],
    ['Application/JSON; OData=FullMetadata', undefined, full],
    ['application/atom+xml,application/json;odata=nometadata', undefined, no],
    ['text/html, application/json;odata=fullmetadata;q=0.9, */*', undefined, full],
    ['application/json;charset=utf-8', undefined, minimal],
    ['application/atom+xml', undefined, 'atom'],
    ['application/xml', undefined, 'atom'],
    ['text/html', undefined, 'unknown'],
    ['application/json;odata=verbose', undefined, 'unknown'],
    ['application/atom+xml', 'application/json;odata=fullmetadata', full],
    ['application/json;odata=nometadata', 'json', minimal],
    ['application/json', 'atom', 'atom'],
    ['application/json', 'csv', 'unknown'],
  ])('wanted by Accept %s and $format %s is %o', (accept, format, wanted) => {
    expect(negotiateFormat(accept, format)).toEqual(wanted);
  });

  it.each([
    [undefined, undefined],
    ['return-content', 'return-content'],
    ['Return-No-Content', 'return-no-content'],
    ['respond-async, return-no-content', 'return-no-content'],
    ['respond-async', undefined],
  ])('preferred by %s is %s', (prefer, preference) => {
    expect(parsePreference(prefer)).toBe(preference);
  });
});
