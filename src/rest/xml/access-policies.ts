/** Stored access policies, the ACL of a container, queue or table: XML to and from AccessPolicy. */
import { escapeXml, findChild, type XmlElement } from '../../base/xml.ts';
import type { ServiceName } from '../../services/common/names.ts';
import type { AccessPolicy } from '../../services/common/policies.ts';
import { SAS_DATE } from '../auth/sas-parser.ts';
import { PERMISSION_LETTERS } from '../auth/service-sas.ts';
import { checkElementName, invalidNode } from './xml-nodes.ts';

export function policiesXml(policies: readonly AccessPolicy[]): string {
  let xml = '';
  for (const { id, start, expiry, permission } of policies) {
    const policy =
      (start ? `<Start>${start}</Start>` : '') +
      (expiry ? `<Expiry>${expiry}</Expiry>` : '') +
      (permission ? `<Permission>${permission}</Permission>` : '');
    xml += `<SignedIdentifier><Id>${escapeXml(id)}</Id>${policy && `<AccessPolicy>${policy}</AccessPolicy>`}</SignedIdentifier>`;
  }
  return xml === '' ? '<SignedIdentifiers />' : `<SignedIdentifiers>${xml}</SignedIdentifiers>`;
}

const POLICIES_MAX = 5;
const POLICY_ID_MAX = 64;

export function parsePolicies(root: XmlElement | undefined, service: ServiceName): AccessPolicy[] {
  const policies = (root?.children ?? []).map((identifier) => {
    checkElementName(identifier, 'SignedIdentifier');
    const id = findChild(identifier, 'Id')?.text.trim();
    if (!id || id.length > POLICY_ID_MAX)
      throw invalidNode(identifier, 'An identifier needs an Id of 1 to 64 characters.');
    const policy = findChild(identifier, 'AccessPolicy');
    const permission = policy && findChild(policy, 'Permission')?.text.trim();
    if (permission && !PERMISSION_LETTERS[service].test(permission))
      throw invalidNode(policy, 'A permission is not known.');
    return {
      id,
      ...parsePolicyDate(policy, 'Start', 'start'),
      ...parsePolicyDate(policy, 'Expiry', 'expiry'),
      ...(permission ? { permission } : {}),
    };
  });
  if (policies.length > POLICIES_MAX) throw invalidNode(root!, `There are more than ${POLICIES_MAX} identifiers.`);
  if (new Set(policies.map(({ id }) => id)).size < policies.length) throw invalidNode(root!, 'An Id is there twice.');
  return policies;
}

/** Dates are stored with seven fractional digits, whatever their precision was when sent. */
function parsePolicyDate<Name extends string>(policy: XmlElement | undefined, tag: string, name: Name) {
  const found = policy && findChild(policy, tag);
  const text = found?.text.trim();
  if (!text) return {};
  const [, day, minute = '00:00', second = '00', fraction = ''] = SAS_DATE.exec(text) ?? [];
  if (!day || Number.isNaN(Date.parse(`${day}T${minute}:${second}Z`)))
    throw invalidNode(found!, `${tag} is not a date.`);
  return { [name]: `${day}T${minute}:${second}.${fraction.padEnd(7, '0')}Z` } as { [key in Name]: string };
}
