/** ProtocolSettings of the File service: settings of SMB and NFS, all of which are off. */
import { findChild, type XmlElement } from '../../base/xml.ts';
import { childrenByName, parseBooleanElement, requiredChild } from './xml-nodes.ts';

/** The first version that shows them. */
const SETTINGS_SINCE = '2020-02-10';

export function protocolSettingsXml(requestVersion: string): string {
  if (requestVersion !== '' && requestVersion < SETTINGS_SINCE) return '';
  return '<ProtocolSettings><SMB><Multichannel><Enabled>false</Enabled></Multichannel></SMB></ProtocolSettings>';
}

/** The settings of each protocol, and the element that switches each on. */
const PROTOCOLS: Readonly<Record<string, Readonly<Record<string, string>>>> = {
  SMB: { Multichannel: 'Enabled', EncryptionInTransit: 'Required' },
  NFS: { EncryptionInTransit: 'Required' },
};

/** Whether the request switches any of them on. */
export function switchesProtocolSetting(settings: XmlElement): boolean {
  childrenByName(settings, Object.keys(PROTOCOLS));
  return Object.entries(PROTOCOLS).some(([protocol, switches]) => {
    const element = findChild(settings, protocol);
    return element !== undefined && switchesAny(element, switches);
  });
}

function switchesAny(protocol: XmlElement, switches: Readonly<Record<string, string>>): boolean {
  childrenByName(protocol, Object.keys(switches));
  return Object.entries(switches)
    .map(([setting, name]) => {
      const element = findChild(protocol, setting);
      return element !== undefined && parseBooleanElement(requiredChild(element, name));
    })
    .includes(true);
}
