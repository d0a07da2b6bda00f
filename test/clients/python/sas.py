"""Shared access signatures that the SDK makes, and those of `holdfast sas`."""
import hashlib
import os
import urllib.request
from datetime import datetime, timedelta, timezone

from azure.storage.blob import AccessPolicy, AccountSasPermissions, BlobClient, BlobSasPermissions, BlobServiceClient
from azure.storage.blob import ContainerClient, ContainerSasPermissions, ResourceTypes
from azure.storage.blob import generate_account_sas, generate_blob_sas, generate_container_sas

from harness import ACCOUNT, KEY, OPTIONS, URL, check, equal, new_container, refused, run, skip

ODD_NAMES = ['plain', 'a b/ü+%25#😀', "it's (odd) & more=?", 'A/b//c']


def soon():
    return datetime.now(timezone.utc) + timedelta(hours=1)


def before():
    return datetime.now(timezone.utc) - timedelta(hours=1)


def account_sas(permission, types='sco', **options):
    resource_types = ResourceTypes('s' in types, 'c' in types, 'o' in types)
    if isinstance(permission, str):
        permission = AccountSasPermissions.from_string(permission)
    return generate_account_sas(ACCOUNT, KEY, resource_types, permission, options.pop('expiry', soon()), **options)


def blob_sas(blob, permission, **options):
    all = {'account_key': KEY, 'permission': permission, 'expiry': soon(), **options}
    return generate_blob_sas(ACCOUNT, blob.container_name, blob.blob_name, **all)


def container_sas(container, permission, **options):
    all = {'account_key': KEY, 'permission': permission, 'expiry': soon(), **options}
    return generate_container_sas(ACCOUNT, container.container_name, **all)


def blob_with(blob, sas):
    return BlobClient(URL, blob.container_name, blob.blob_name, credential=sas, **OPTIONS)


def container_with(container, sas):
    return ContainerClient(URL, container.container_name, credential=sas, **OPTIONS)


def filled(*names):
    container = new_container()
    for name in names:
        container.upload_blob(name, name.encode())
    return container


@check('an account SAS does everything that its letters allow')
def account_all():
    service = BlobServiceClient(URL, credential=account_sas('rwdlacup'), **OPTIONS)
    container = service.get_container_client(new_container().container_name)
    for name in ODD_NAMES:
        container.upload_blob(name, name.encode())
        equal(container.download_blob(name).readall(), name.encode())
    equal(sorted(each.name for each in container.list_blobs()), sorted(ODD_NAMES))
    assert container.container_name in [each.name for each in service.list_containers()]
    container.delete_blob(ODD_NAMES[0])
    container.delete_container()


@check('an account SAS is held to its letters, resource types and service')
def account_limits():
    container = filled('blob')
    blob = container.get_blob_client('blob')
    reader = blob_with(blob, account_sas('r', 'o'))
    equal(reader.download_blob().readall(), b'blob')
    refused(403, 'AuthorizationPermissionMismatch', lambda: reader.upload_blob(b'x', overwrite=True))
    refused(403, 'AuthorizationPermissionMismatch', reader.delete_blob)
    of_objects = container_with(container, account_sas('rl', 'o'))
    refused(403, 'AuthorizationResourceTypeMismatch', of_objects.get_container_properties)
    refused(403, 'AuthorizationResourceTypeMismatch', blob_with(blob, account_sas('r', 'sc')).download_blob)


@check('an account SAS begins and ends')
def account_times():
    blob = filled('blob').get_blob_client('blob')
    refused(403, 'AuthenticationFailed', blob_with(blob, account_sas('r', expiry=before())).download_blob)
    refused(403, 'AuthenticationFailed', blob_with(blob, account_sas('r', start=soon())).download_blob)
    equal(blob_with(blob, account_sas('r', start=before())).download_blob().readall(), b'blob')


@check('an account SAS is held to addresses and protocols')
def account_places():
    blob = filled('blob').get_blob_client('blob')
    equal(blob_with(blob, account_sas('r', ip='127.0.0.1')).download_blob().readall(), b'blob')
    equal(blob_with(blob, account_sas('r', ip='127.0.0.0-127.0.0.9')).download_blob().readall(), b'blob')
    refused(403, 'AuthorizationSourceIPMismatch', blob_with(blob, account_sas('r', ip='10.0.0.1')).download_blob)
    equal(blob_with(blob, account_sas('r', protocol='https,http')).download_blob().readall(), b'blob')
    if URL.startswith('http:'):
        refused(403, 'AuthorizationProtocolMismatch', blob_with(blob, account_sas('r', protocol='https')).download_blob)


@check('a SAS of one blob opens that blob only, whatever its name')
def blob_names():
    container = filled(*ODD_NAMES, 'other')
    for name in ODD_NAMES:
        blob = container.get_blob_client(name)
        sas = blob_sas(blob, 'r')
        equal(blob_with(blob, sas).download_blob().readall(), name.encode())
        refused(403, 'AuthenticationFailed', blob_with(container.get_blob_client('other'), sas).download_blob)
        equal(urllib.request.urlopen(f'{blob.url}?{sas}').read(), name.encode())


@check('a SAS of one blob is held to its letters')
def blob_limits():
    blob = filled('blob').get_blob_client('blob')
    reader = blob_with(blob, blob_sas(blob, BlobSasPermissions(read=True)))
    refused(403, 'AuthorizationPermissionMismatch', lambda: reader.upload_blob(b'x', overwrite=True))
    refused(403, 'AuthorizationPermissionMismatch', reader.delete_blob)
    refused(403, 'AuthorizationPermissionMismatch', lambda: reader.set_blob_metadata({'a': 'b'}))
    writer = blob_with(blob, blob_sas(blob, BlobSasPermissions(write=True)))
    writer.upload_blob(b'written', overwrite=True)
    refused(403, 'AuthorizationPermissionMismatch', writer.download_blob)
    deleter = blob_with(blob, blob_sas(blob, BlobSasPermissions(delete=True)))
    deleter.delete_blob()
    creator = blob_with(blob, blob_sas(blob, BlobSasPermissions(create=True)))
    creator.upload_blob(b'created')
    refused(403, 'UnauthorizedBlobOverwrite', lambda: creator.upload_blob(b'again', overwrite=True))
    equal(blob.download_blob().readall(), b'created')


@check('a changed SAS is refused')
def tampered():
    blob = filled('blob').get_blob_client('blob')
    sas = blob_sas(blob, 'r')
    for wrong in (sas.replace('sp=r', 'sp=rw'), sas.replace('sig=', 'sig=A'), sas.replace('se=2', 'se=3')):
        assert wrong != sas
        refused(403, 'AuthenticationFailed', blob_with(blob, wrong).download_blob)


@check('a SAS of one blob says other headers than those stored')
def overrides():
    blob = filled('blob').get_blob_client('blob')
    sas = blob_sas(
        blob,
        'r',
        cache_control='no-cache',
        content_disposition='attachment; filename="a b.txt"',
        content_encoding='identity',
        content_language='fr',
        content_type='text/x-odd; a="b+c"',
    )
    with urllib.request.urlopen(f'{blob.url}?{sas}') as answer:
        equal(answer.headers['Cache-Control'], 'no-cache')
        equal(answer.headers['Content-Disposition'], 'attachment; filename="a b.txt"')
        equal(answer.headers['Content-Encoding'], 'identity')
        equal(answer.headers['Content-Language'], 'fr')
        equal(answer.headers['Content-Type'], 'text/x-odd; a="b+c"')


@check('a SAS of a container opens its blobs and its list')
def of_container():
    container = filled('one', 'two')
    permission = ContainerSasPermissions(read=True, list=True, write=True)
    guest = container_with(container, container_sas(container, permission))
    equal([each.name for each in guest.list_blobs()], ['one', 'two'])
    equal(guest.download_blob('one').readall(), b'one')
    guest.upload_blob('three', bytes(5_000_000))
    equal(hashlib.md5(guest.download_blob('three').readall()).digest(), hashlib.md5(bytes(5_000_000)).digest())
    refused(403, 'AuthorizationPermissionMismatch', lambda: guest.delete_blob('one'))
    wrong_container = container_with(filled('one'), container_sas(container, 'rl'))
    refused(403, 'AuthenticationFailed', lambda: wrong_container.download_blob('one'))
    refused(403, 'AuthorizationFailure', guest.get_container_access_policy)


@check('a SAS takes the stages of an upload, leases and conditions')
def writes():
    container = new_container()
    guest = container_with(container, container_sas(container, 'racwd'))
    blob = guest.get_blob_client('blob')
    blob.stage_block('YQ==', b'first ')
    blob.stage_block('Yg==', b'second')
    blob.commit_block_list(['YQ==', 'Yg=='], metadata={'a': 'b'})
    lease = blob.acquire_lease(15)
    refused(412, 'LeaseIdMissing', lambda: blob.upload_blob(b'x', overwrite=True))
    blob.upload_blob(b'with lease', overwrite=True, lease=lease)
    lease.release()
    equal(blob.download_blob().readall(), b'with lease')
    blob.delete_blob()


@check('a stored access policy is merged in, and its change is felt at once')
def policies():
    container = filled('blob')
    policy = AccessPolicy(permission=ContainerSasPermissions(read=True, list=True), expiry=soon(), start=before())
    container.set_container_access_policy({'my policy': policy})
    stored = container.get_container_access_policy()['signed_identifiers'][0]
    equal([stored.id, stored.access_policy.permission], ['my policy', 'rl'])
    sas = container_sas(container, None, expiry=None, policy_id='my policy')
    guest = container_with(container, sas)
    equal(guest.download_blob('blob').readall(), b'blob')
    equal([each.name for each in guest.list_blobs()], ['blob'])
    blob = container.get_blob_client('blob')
    of_blob = blob_with(blob, blob_sas(blob, None, expiry=None, policy_id='my policy'))
    equal(of_blob.download_blob().readall(), b'blob')
    container.set_container_access_policy({'my policy': AccessPolicy(permission='l', expiry=soon())})
    refused(403, 'AuthorizationPermissionMismatch', lambda: guest.download_blob('blob'))
    equal([each.name for each in guest.list_blobs()], ['blob'])
    container.set_container_access_policy({'my policy': AccessPolicy(permission='rl', expiry=before())})
    refused(403, 'AuthenticationFailed', lambda: guest.download_blob('blob'))
    container.set_container_access_policy({})
    refused(403, 'AuthenticationFailed', lambda: guest.download_blob('blob'))


@check('copies from a source that only a SAS opens')
def copies():
    container = filled('source')
    source = container.get_blob_client('source')
    target = container.get_blob_client('target')
    target.start_copy_from_url(f'{source.url}?{blob_sas(source, "r")}')
    equal(target.download_blob().readall(), b'source')


@check('a SAS of `holdfast sas` is taken')
def from_command():
    url = os.environ.get('HOLDFAST_SAS_OF_COMMAND') or skip()
    blob = BlobClient.from_blob_url(url, **OPTIONS)
    equal(blob.download_blob().readall(), os.environ['HOLDFAST_SAS_CONTENT'].encode())
    refused(403, 'AuthorizationPermissionMismatch', lambda: blob.upload_blob(b'x', overwrite=True))


run()
