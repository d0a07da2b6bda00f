import type { IncomingMessage } from 'node:http';
import { describe, expect, it } from 'vitest';
import { ticksFromUnix } from '../base/time.ts';
import { commonErrors, errorFactory, StorageError } from '../services/common/errors.ts';
import { errorReply, metadataHeaders, validatorHeaders, xmlReply } from './reply.ts';

const fail = errorFactory(commonErrors);
const now = ticksFromUnix(Date.UTC(2019, 4, 1, 10, 20, 30)) + 1_234_567n;

const GET = { method: 'GET' } as IncomingMessage;

describe('an error', () => {
  it('is XML with a byte order mark, the request id and the time', () => {
    const reply = errorReply(
      fail('InvalidHeaderValue', { HeaderName: 'x-ms-lease-id', HeaderValue: "<'>" }),
      'the-id',
      now,
      GET,
    );
    expect(reply).toMatchObject({
      status: 400,
      reason: 'The value for one of the HTTP headers is not in the correct format.',
      headers: { 'Content-Type': 'application/xml', 'x-ms-error-code': 'InvalidHeaderValue' },
    });
    expect(String(reply.body)).toBe(
      '\ufeff<?xml version="1.0" encoding="utf-8"?><Error><Code>InvalidHeaderValue</Code>' +
        '<Message>The value for one of the HTTP headers is not in the correct format.\n' +
        'RequestId:the-id\nTime:2019-05-01T10:20:30.1234567Z</Message>' +
        '<HeaderName>x-ms-lease-id</HeaderName><HeaderValue>&lt;&apos;&gt;</HeaderValue></Error>',
    );
  });

  it('has no body for HEAD', () => {
    const reply = errorReply(fail('ResourceNotFound'), 'the-id', now, { method: 'HEAD' } as IncomingMessage);
    expect(reply.body).toBeUndefined();
    expect(reply.headers).toMatchObject({ 'x-ms-error-code': 'ResourceNotFound', 'Transfer-Encoding': 'chunked' });
    expect(reply.headers).not.toHaveProperty('Content-Type');
  });

  it('has neither body nor type when nothing was modified', () => {
    const reply = errorReply(fail('NotModified'), 'the-id', now, GET);
    expect(reply).toMatchObject({ status: 304, headers: { 'x-ms-error-code': 'ConditionNotMet' } });
    expect(reply.body).toBeUndefined();
    expect(reply.headers).not.toHaveProperty('Content-Type');
  });

  it('has a reason phrase of one printable line, whatever its message', () => {
    expect(errorReply(new StorageError('A', 400, 'one é\r\ntwo'), 'id', now, GET).reason).toBe('one ??');
  });

  it('has Retry-After', () => {
    expect(errorReply(new StorageError('A', 503, 'busy', undefined, 1), 'id', now, GET).headers).toHaveProperty(
      'Retry-After',
      1,
    );
  });
});

describe('headers', () => {
  it('hold the ETag in quotes and dates without fractions', () => {
    expect(validatorHeaders({ etag: '0x8D1', modified: now })).toEqual({
      ETag: '"0x8D1"',
      'Last-Modified': 'Wed, 01 May 2019 10:20:30 GMT',
    });
  });

  it('hold metadata in its own case', () => {
    expect(metadataHeaders({ Colour: 'red' })).toEqual({ 'x-ms-meta-Colour': 'red' });
  });

  it('of an XML reply can be extended', () => {
    expect(xmlReply(200, '<A/>', { ETag: 'x' }).headers).toEqual({ 'Content-Type': 'application/xml', ETag: 'x' });
  });
});
