import os
from datetime import datetime, timedelta, timezone

from azure.core.exceptions import ResourceNotFoundError
from azure.storage.blob import BlobSasPermissions, generate_blob_sas
from azure.storage.fileshare import (
    ContentSettings,
    FileSasPermissions,
    ShareFileClient,
    ShareSasPermissions,
    ShareServiceClient,
    generate_file_sas,
    generate_share_sas,
)

from harness import ACCOUNT, CONNECTION_STRING, KEY, OPTIONS, check, equal, new_container, refused, run

MIB = 1024 * 1024
SDDL = 'O:BAG:SYD:PAI(A;OICI;FA;;;SY)(A;;FR;;;WD)'
shares = ShareServiceClient.from_connection_string(CONNECTION_STRING, **OPTIONS)


def new_share(**options):
    share = shares.get_share_client(f's-{os.urandom(8).hex()}')
    share.create_share(**options)
    return share


def new_file(share, name, content):
    file = share.get_file_client(name)
    file.upload_file(content)
    return file


def in_an_hour():
    return datetime.now(timezone.utc) + timedelta(hours=1)


def moment_of(value):
    """Some versions of the SDK leave the text of a time as it is, and some forget its zone."""
    return datetime.fromisoformat(value[:26]) if isinstance(value, str) else value.replace(tzinfo=None)


def names(found):
    return [(each['name'], each['is_directory']) for each in found]


@check('makes, lists, reads and deletes shares')
def lifecycle():
    share = new_share(quota=3, metadata={'a': 'b'})
    [found] = shares.list_shares(name_starts_with=share.share_name, include_metadata=True)
    equal([found.name, found.quota, found.metadata], [share.share_name, 3, {'a': 'b'}])
    share.set_share_quota(7)
    share.set_share_metadata({'c': 'd'})
    properties = share.get_share_properties()
    equal([properties.quota, properties.metadata], [7, {'c': 'd'}])
    equal(share.get_share_stats(), 0)
    refused(409, 'ShareAlreadyExists', share.create_share)
    share.delete_share()
    refused(404, 'ShareNotFound', share.get_share_properties)


@check('makes a tree, lists it in any case, and renames a directory with all below')
def tree():
    share = new_share()
    top = share.create_directory('Top')
    below = top.create_subdirectory('Below')
    below.upload_file('One.txt', b'one')
    top.upload_file('two.txt', b'two')
    equal(names(share.list_directories_and_files()), [('Top', True)])
    equal(names(share.list_directories_and_files('tOP')), [('Below', True), ('two.txt', False)])
    equal(names(share.list_directories_and_files('top', name_starts_with='T')), [('two.txt', False)])
    refused(409, 'ResourceAlreadyExists', lambda: share.create_directory('TOP'))
    refused(409, 'DirectoryNotEmpty', lambda: share.delete_directory('top'))
    moved = top.rename_directory('Moved')
    equal(names(moved.list_directories_and_files()), [('Below', True), ('two.txt', False)])
    equal(share.get_file_client('moved/BELOW/one.TXT').download_file().readall(), b'one')
    refused(404, 'ResourceNotFound', top.get_directory_properties)
    file = share.get_file_client('moved/two.txt').rename_file('Moved/Below/three.txt')
    equal(file.download_file().readall(), b'two')
    equal(share.get_directory_client('moved/below').exists(), True)


@check('lists with times, attributes, ETags and permission keys')
def extended_listing():
    share = new_share()
    directory = share.create_directory('dir')
    file = directory.upload_file('file', b'12345')
    [found] = directory.list_directories_and_files(
        include=['timestamps', 'Etag', 'Attributes', 'PermissionKey'], include_extended_info=True
    )
    properties = file.get_file_properties()
    equal([found.name, found.size, found.file_id], ['file', 5, properties.file_id])
    equal([found.file_attributes, found.permission_key], ['Archive', properties.permission_key])
    equal(moment_of(found.last_write_time), moment_of(properties.last_write_time))
    equal(found.etag.strip('"'), properties.etag.strip('"'))


@check('uploads in parallel ranges, and downloads all or a part')
def parallel():
    share = new_share()
    content = os.urandom(9 * MIB + 17)
    file = share.get_file_client('large')
    file.upload_file(content, max_concurrency=4)
    assert file.download_file(max_concurrency=4).readall() == content
    equal(file.download_file(offset=5 * MIB - 3, length=7).readall(), content[5 * MIB - 3 : 5 * MIB + 4])
    equal(file.get_file_properties().size, len(content))


@check('writes, clears and lists ranges of a sparse file, and resizes it')
def ranges():
    file = new_share().get_file_client('sparse')
    file.create_file(8 * MIB)
    equal(file.get_ranges(), [])
    file.upload_range(b'x' * 1024, offset=512, length=1024)
    file.upload_range(b'y' * 512, offset=4 * MIB, length=512)
    equal([(r['start'], r['end']) for r in file.get_ranges()], [(512, 1535), (4 * MIB, 4 * MIB + 511)])
    file.clear_range(offset=512, length=512)
    equal([(r['start'], r['end']) for r in file.get_ranges()], [(1024, 1535), (4 * MIB, 4 * MIB + 511)])
    equal(file.download_file(offset=1000, length=48).readall(), b'\0' * 24 + b'x' * 24)
    file.resize_file(2048)
    equal([(r['start'], r['end']) for r in file.get_ranges()], [(1024, 1535)])
    equal(file.get_file_properties().size, 2048)


@check('writes a range from another file and from a blob')
def range_from_url():
    share = new_share()
    source = new_file(share, 'source', b'0123456789abcdef' * 64)
    blob = new_container().get_blob_client('blob')
    blob.upload_blob(b'blob' * 128)
    target = share.get_file_client('target')
    target.create_file(1024)
    sas = generate_file_sas(
        ACCOUNT, share.share_name, ['source'], KEY, permission=FileSasPermissions(read=True), expiry=in_an_hour()
    )
    target.upload_range_from_url(f'{source.url}?{sas}', offset=0, length=512, source_offset=512)
    target.upload_range_from_url(signed(blob), offset=512, length=512, source_offset=0)
    equal(target.download_file().readall(), b'0123456789abcdef' * 32 + b'blob' * 128)


def signed(blob):
    sas = generate_blob_sas(
        ACCOUNT,
        blob.container_name,
        blob.blob_name,
        account_key=KEY,
        permission=BlobSasPermissions(read=True),
        expiry=in_an_hour(),
    )
    return f'{blob.url}?{sas}'


@check('copies a file to a file, a blob to a file and a file to a blob')
def copies():
    share = new_share()
    container = new_container()
    blob = container.get_blob_client('blob')
    blob.upload_blob(b'from a blob', metadata={'a': 'b'})
    file = new_file(share, 'file', b'from a file')
    copy = share.get_file_client('copy')
    equal(copy.start_copy_from_url(file.url)['copy_status'], 'success')
    equal(copy.download_file().readall(), b'from a file')
    copy.start_copy_from_url(signed(blob))
    finished(copy.get_file_properties)
    equal([copy.download_file().readall(), copy.get_file_properties().metadata], [b'from a blob', {'a': 'b'}])
    sas = generate_file_sas(
        ACCOUNT, share.share_name, ['file'], KEY, permission=FileSasPermissions(read=True), expiry=in_an_hour()
    )
    other = container.get_blob_client('other')
    other.start_copy_from_url(f'{file.url}?{sas}')
    finished(other.get_blob_properties)
    equal(other.download_blob().readall(), b'from a file')
    refused(409, 'NoPendingCopyOperation', lambda: copy.abort_copy(copy.get_file_properties().copy.id))


def finished(properties):
    for _ in range(1000):
        status = properties().copy.status
        if status != 'pending':
            return equal(status, 'success')
    raise AssertionError('the copy does not end')


@check('locks a file and a share by leases')
def leases():
    share = new_share()
    file = new_file(share, 'file', b'12345')
    lease = file.acquire_lease()
    refused(412, 'LeaseIdMissing', lambda: file.upload_range(b'x', offset=0, length=1))
    refused(412, 'LeaseIdMissing', file.delete_file)
    file.upload_range(b'x', offset=0, length=1, lease=lease)
    lease.release()
    file.delete_file()
    held = share.acquire_lease(lease_duration=15)
    refused(412, 'LeaseIdMissing', share.delete_share)
    held.renew()
    share.delete_share(lease=held)


@check('keeps attributes, times, permissions, headers and metadata')
def properties():
    share = new_share()
    moment = datetime(2021, 3, 4, 5, 6, 7, 123400)
    file = share.get_file_client('file')
    file.create_file(
        4,
        file_attributes='ReadOnly|Hidden',
        file_creation_time=moment,
        file_last_write_time=moment,
        file_permission=SDDL,
        content_settings=ContentSettings(content_type='text/plain', content_language='en'),
        metadata={'a': 'b'},
    )
    found = file.get_file_properties()
    equal(found.file_attributes, 'ReadOnly | Hidden | Archive')
    equal(moment_of(found.creation_time), moment)
    equal(moment_of(found.last_write_time), moment)
    equal([found.content_settings.content_type, found.metadata], ['text/plain', {'a': 'b'}])
    assert SDDL in share.get_permission_for_share(found.permission_key)
    file.set_http_headers(ContentSettings(content_type='text/html'), file_attributes='Archive', file_permission='preserve')
    changed = file.get_file_properties()
    equal([changed.file_attributes, changed.content_settings.content_type], ['Archive', 'text/html'])
    equal([changed.creation_time, changed.permission_key], [found.creation_time, found.permission_key])
    equal(changed.content_settings.content_language, None)


@check('gives the keys of permissions, and sets them on directories and files')
def permissions():
    share = new_share()
    key = share.create_permission_for_share(SDDL)
    equal(share.create_permission_for_share(SDDL), key)
    directory = share.create_directory('dir')
    directory.set_http_headers(permission_key=key)
    equal(directory.get_directory_properties().permission_key, key)
    inherited = directory.upload_file('file', b'1').get_file_properties().permission_key
    other = directory.create_subdirectory('below').get_directory_properties().permission_key
    assert len({key, inherited, other}) == 3
    refused(400, 'FileInvalidPermission', lambda: share.create_permission_for_share('everybody'))
    refused(400, 'FileInvalidPermissionKey', lambda: directory.set_http_headers(permission_key='1*1'))


@check('works with the SAS of a share and of a file, within their rights')
def sas():
    share = new_share()
    new_file(share, 'file', b'secret')
    reading = generate_file_sas(
        ACCOUNT, share.share_name, ['file'], KEY, permission=FileSasPermissions(read=True), expiry=in_an_hour()
    )
    reader = ShareFileClient(shares.url, share.share_name, 'file', credential=reading, **OPTIONS)
    equal(reader.download_file().readall(), b'secret')
    refused(403, 'AuthorizationPermissionMismatch', reader.delete_file)
    writing = generate_share_sas(
        ACCOUNT, share.share_name, KEY, permission=ShareSasPermissions(write=True, create=True), expiry=in_an_hour()
    )
    writer = ShareFileClient(shares.url, share.share_name, 'new', credential=writing, **OPTIONS)
    writer.upload_file(b'written')
    equal(share.get_file_client('new').download_file().readall(), b'written')
    refused(403, 'AuthorizationPermissionMismatch', writer.download_file)


@check('refuses what is not there, and names that no file can have')
def refusals():
    share = new_share()
    refused(404, 'ResourceNotFound', share.get_file_client('missing').get_file_properties)
    refused(404, 'ParentNotFound', lambda: share.get_file_client('missing/file').create_file(1))
    refused(400, 'InvalidResourceName', lambda: share.get_file_client('a<b').create_file(1))
    try:
        share.get_directory_client('missing').get_directory_properties()
        raise AssertionError('a directory that is missing was found')
    except ResourceNotFoundError:
        pass


@check('takes snapshots of shares, reads, compares, restores and deletes them')
def share_snapshots():
    share = new_share()
    file = share.get_file_client('file')
    file.create_file(2048)
    first = share.create_snapshot(metadata={'of': 'snapshot'})['snapshot']
    file.upload_range(b'x' * 1536, offset=0, length=1536)
    second = share.create_snapshot()['snapshot']
    file.clear_range(offset=512, length=512)
    ranges, cleared = file.get_ranges_diff(first)
    equal([ranges, cleared], [[{'start': 0, 'end': 511}, {'start': 1024, 'end': 1535}], [{'start': 512, 'end': 1023}]])
    equal(file.get_ranges_diff(second), ([], [{'start': 512, 'end': 1023}]))
    file.delete_file()
    at_second = shares.get_share_client(share.share_name, snapshot=second)
    equal(names(at_second.list_directories_and_files()), [('file', False)])
    kept = at_second.get_file_client('file')
    equal(kept.download_file().readall(), b'x' * 1536 + bytes(512))
    equal(shares.get_share_client(share.share_name, snapshot=first).get_share_properties().metadata, {'of': 'snapshot'})
    listed = [each.snapshot for each in shares.list_shares(name_starts_with=share.share_name, include_snapshots=True)]
    equal(listed, [first, second, None])
    file.start_copy_from_url(f'{file.url.split("?")[0]}?sharesnapshot={second}')
    equal(file.download_file().readall(), b'x' * 1536 + bytes(512))
    refused(409, 'ShareHasSnapshots', share.delete_share)
    shares.get_share_client(share.share_name, snapshot=first).delete_share()
    lease = at_second.acquire_lease()
    refused(409, 'DeleteShareWhenSnapshotLeased', lambda: share.delete_share(delete_snapshots=True))
    refused(412, 'LeaseIdMissing', at_second.delete_share)
    lease.release()
    share.delete_share(delete_snapshots=True)
    refused(404, 'ShareNotFound', share.get_share_properties)


run()
