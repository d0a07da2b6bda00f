/** The page that a browser gets at the root of a service: what this is, where the services are, and how to connect. */
import { escapeXml } from '../base/xml.ts';
import { type Account, developmentAccount } from './config.ts';
import { formatConnectionString, type Origins, serviceTitle } from './endpoints.ts';

interface WelcomePage {
  readonly origins: Origins;
  /** The accounts of this moment. */
  readonly accounts: readonly Account[];
  /** Whether clients have to trust the authority of this server, whose certificate they can get. */
  readonly hasAuthority: boolean;
}

export function welcomePage({ origins, accounts, hasAuthority }: WelcomePage): string {
  const account = accounts.find(isWellKnown) ?? { name: '<account>', keys: ['<key>'] };
  const services = Object.entries(origins).map(
    ([service, origin]) =>
      `<tr><th>${serviceTitle(service)}</th><td><code>${escapeXml(`${origin}/${account.name}`)}</code></td></tr>`,
  );
  const note =
    account.name === developmentAccount.name
      ? 'The key is the well-known one of the development account, which most SDKs also know as <code>UseDevelopmentStorage=true</code>.'
      : 'Keys are not shown here: <code>holdfast account list --show-keys</code> prints them on the machine of the server.';
  const certificate = hasAuthority
    ? '<li><a href="/_holdfast/certificate">The certificate</a> that clients have to trust</li>'
    : '';
  return `<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width">
<title>Holdfast</title>
<style>
body { font: 16px/1.5 system-ui, sans-serif; max-width: 48rem; margin: 3rem auto; padding: 0 1rem; color: #222; background: #fff }
code { font-size: .9em; background: #f3f3f3; padding: .1em .3em; overflow-wrap: anywhere }
th { text-align: left; padding-right: 1.5rem }
@media (prefers-color-scheme: dark) { body { color: #ddd; background: #1b1b1b } code { background: #2c2c2c } a { color: #8bf } }
</style>
</head>
<body>
<h1>Holdfast</h1>
<p>This is a storage server with the REST protocol of Azure Storage. It is meant for programs: use it with Microsoft's SDKs, with Storage Explorer, or with any client of Azure Storage.</p>
<h2>Services</h2>
<table>
${services.join('\n')}
</table>
<h2>Connection string</h2>
<p><code>${escapeXml(formatConnectionString(account, origins))}</code></p>
<p>${note}</p>
<h2>More</h2>
<ul>
<li>The guide is in the folder <code>docs/guide</code> of the package: first steps, connection strings, accounts, HTTPS, Docker, what differs from Azure</li>
<li><code>holdfast --help</code> lists the flags and commands</li>
<li><a href="/health/ready">Whether the server is ready</a></li>
${certificate}
</ul>
</body>
</html>
`;
}

/** Any other account is nobody's business who merely reaches the port. */
function isWellKnown({ name, keys }: Account): boolean {
  return name === developmentAccount.name && keys[0] === developmentAccount.keys[0];
}
