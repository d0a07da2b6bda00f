import base64
import hashlib
import io
import uuid

from azure.core import MatchConditions
from azure.storage.blob import BlobBlock, BlobPrefix, BlobServiceClient, ContentSettings

from harness import OPTIONS, check, equal, new_container, refused, run, service

MIB = 1024 * 1024


def bytes_of(length, seed=1):
    """Not a pattern that repeats with the length of a block."""
    block = hashlib.sha256(str(seed).encode()).digest()
    return b''.join(hashlib.sha256(block + n.to_bytes(8, 'big')).digest() for n in range(-(-length // 32)))[:length]


@check('uploads and downloads blobs of many lengths')
def lengths():
    container = new_container()
    for length in (0, 1, 16 * 1024, 16 * 1024 + 1, MIB, 5 * MIB + 7):
        blob = container.get_blob_client(f'of {length}')
        data = bytes_of(length)
        blob.upload_blob(data)
        properties = blob.get_blob_properties()
        equal(properties.size, length)
        equal(bytes(properties.content_settings.content_md5), hashlib.md5(data).digest())
        equal(blob.download_blob().readall(), data)


@check('uploads in blocks, several at a time, and downloads in ranges')
def blocks_in_parallel():
    small = {'max_single_put_size': 256 * 1024, 'max_block_size': 300_000, 'min_large_block_upload_threshold': 1}
    ranges = {'max_single_get_size': 100_000, 'max_chunk_get_size': 250_000}
    name = new_container().container_name
    chunky = BlobServiceClient(service.url, credential=service.credential, **small, **ranges, **OPTIONS)
    blob = chunky.get_blob_client(name, 'in blocks')
    data = bytes_of(3 * MIB + 1)
    blob.upload_blob(io.BytesIO(data), max_concurrency=4)
    committed, uncommitted = blob.get_block_list('all')
    equal([len(committed), len(uncommitted)], [11, 0])
    equal(blob.download_blob(max_concurrency=4).readall(), data)
    equal(blob.download_blob(offset=1000, length=700_000, max_concurrency=3).readall(), data[1000:701_000])


@check('uploads a stream of unknown length')
def stream():
    class Stream(io.RawIOBase):
        def __init__(self):
            self.inner = io.BytesIO(bytes_of(2 * MIB))

        def readable(self):
            return True

        def read(self, count=-1):
            return self.inner.read(count)

    blob = new_container().get_blob_client('stream')
    blob.upload_blob(Stream())
    equal(blob.download_blob().readall(), bytes_of(2 * MIB))


@check('reads ranges, with the hash of a range')
def ranges():
    blob = new_container().get_blob_client('ranges')
    data = bytes_of(100_000)
    blob.upload_blob(data)
    equal(blob.download_blob(offset=0, length=1).readall(), data[:1])
    equal(blob.download_blob(offset=99_999, length=1).readall(), data[-1:])
    equal(blob.download_blob(offset=50_000).readall(), data[50_000:])
    equal(blob.download_blob(offset=99_000, length=5000).readall(), data[99_000:])
    equal(blob.download_blob(offset=10, length=1000, validate_content=True).readall(), data[10:1010])
    refused(416, 'InvalidRange', lambda: blob.download_blob(offset=100_000, length=10).readall())


@check('uploads with the hash of the content, which is held against the bytes')
def hashes():
    blob = new_container().get_blob_client('hash')
    blob.upload_blob(bytes_of(1000), validate_content=True)
    wrong = ContentSettings(content_md5=bytearray(hashlib.md5(b'other').digest()))
    refused(400, 'Md5Mismatch', lambda: blob.upload_blob(bytes_of(1000), overwrite=True, content_settings=wrong))
    # For a block list it is only kept.
    id = base64.b64encode(b'one').decode()
    blob.stage_block(id, b'x')
    blob.commit_block_list([BlobBlock(id)], content_settings=wrong)
    equal(bytes(blob.get_blob_properties().content_settings.content_md5), bytes(wrong.content_md5))


@check('stages and commits blocks in any order, and keeps committed ones')
def block_lists():
    blob = new_container().get_blob_client('blocks')
    ids = [base64.b64encode(f'block {n}'.encode()).decode() for n in range(4)]
    for id in ids:
        blob.stage_block(id, id.encode() * 10, validate_content=True)
    equal([each.id for each in blob.get_block_list('uncommitted')[1]], ids)
    blob.commit_block_list([BlobBlock(id) for id in (ids[2], ids[0])])
    equal(blob.download_blob().readall(), ids[2].encode() * 10 + ids[0].encode() * 10)
    committed, uncommitted = blob.get_block_list('all')
    equal([[each.id for each in committed], uncommitted], [[ids[2], ids[0]], []])
    missing = base64.b64encode(b'absent!').decode()
    refused(400, 'InvalidBlockList', lambda: blob.commit_block_list([BlobBlock(missing)]))


@check('keeps metadata and properties')
def properties():
    blob = new_container().get_blob_client('properties')
    settings = ContentSettings(
        content_type='text/plain; charset=utf-8',
        content_encoding='identity',
        content_language='de',
        content_disposition='attachment; filename="a b.txt"',
        cache_control='no-store',
    )
    blob.upload_blob(b'text', metadata={'Mixed_Case': 'a, b; c', 'empty1': 'x'}, content_settings=settings)
    seen = blob.get_blob_properties()
    equal(seen.metadata, {'Mixed_Case': 'a, b; c', 'empty1': 'x'})
    for name in ('content_type', 'content_encoding', 'content_language', 'content_disposition', 'cache_control'):
        equal(getattr(seen.content_settings, name), getattr(settings, name))
    equal(seen.blob_type, 'BlockBlob')
    before = seen.etag
    blob.set_http_headers(ContentSettings(content_type='text/csv'))
    blob.set_blob_metadata({'only': 'this'})
    seen = blob.get_blob_properties()
    equal([seen.metadata, seen.content_settings.content_type], [{'only': 'this'}, 'text/csv'])
    equal(seen.content_settings.content_language, None)
    assert seen.etag != before
    assert seen.creation_time <= seen.last_modified


@check('finds what was named with backslashes under slashes')
def backslashes():
    container = new_container()
    container.upload_blob('a\\b', b'bytes')
    equal([each.name for each in container.list_blobs()], ['a/b'])
    equal(container.download_blob('a/b').readall(), b'bytes')
    equal(container.download_blob('a\\b').readall(), b'bytes')
    container.delete_blob('a\\b')
    equal(list(container.list_blobs()), [])


@check('writes and reads under ETag and date conditions')
def conditions():
    blob = new_container().get_blob_client('conditions')
    blob.upload_blob(b'first')
    refused(409, 'BlobAlreadyExists', lambda: blob.upload_blob(b'second'))
    first = blob.get_blob_properties()
    same = {'etag': first.etag, 'match_condition': MatchConditions.IfNotModified}
    other = {'etag': first.etag, 'match_condition': MatchConditions.IfModified}
    refused(412, 'ConditionNotMet', lambda: blob.upload_blob(b'second', overwrite=True, **other))
    refused(304, 'ConditionNotMet', lambda: blob.download_blob(**other))
    refused(304, 'ConditionNotMet', lambda: blob.get_blob_properties(if_modified_since=first.last_modified))
    equal(blob.download_blob(**same).readall(), b'first')
    blob.upload_blob(b'second', overwrite=True, **same)
    refused(412, 'ConditionNotMet', lambda: blob.upload_blob(b'third', overwrite=True, **same))
    refused(412, 'ConditionNotMet', lambda: blob.delete_blob(**same))
    refused(412, 'ConditionNotMet', lambda: blob.set_blob_metadata({}, **same))
    equal(blob.download_blob().readall(), b'second')


@check('is kept out by the lease of another')
def leases():
    blob = new_container().get_blob_client('lease')
    blob.upload_blob(b'first')
    lease = blob.acquire_lease(lease_duration=15)
    refused(412, 'LeaseIdMissing', lambda: blob.upload_blob(b'second', overwrite=True))
    refused(
        412,
        'LeaseIdMismatchWithBlobOperation',
        lambda: blob.upload_blob(b'second', overwrite=True, lease=str(uuid.uuid4())),
    )
    refused(409, 'LeaseAlreadyPresent', lambda: blob.acquire_lease(lease_duration=15))
    blob.upload_blob(b'second', overwrite=True, lease=lease)
    lease.renew()
    lease.change(str(uuid.uuid4()))
    equal(blob.get_blob_properties().lease.state, 'leased')
    lease.release()
    lease = blob.acquire_lease(lease_duration=-1)
    equal(blob.get_blob_properties().lease.duration, 'infinite')
    equal(lease.break_lease(), 0)
    equal(blob.get_blob_properties().lease.state, 'broken')
    blob.delete_blob()


NAMES = ['a', 'a b', 'a/b', 'a/b/c', 'a+b', 'a%20b', 'a#b?c=d&e', 'ä/ö 😀', "quote'(1)*!~", 'dots/...', '%2F', 'A']


@check('finds blobs of any name again')
def names():
    container = new_container()
    for name in NAMES:
        container.upload_blob(name, name.encode())
    for name in NAMES:
        equal(container.download_blob(name).readall(), name.encode())
    equal(sorted(each.name for each in container.list_blobs()), sorted(NAMES))


@check('lists in pages, by prefix and by folder, with metadata')
def lists():
    container = new_container()
    wanted = [f'{folder}/{n:02}' for folder in ('one', 'two') for n in range(7)] + ['zero']
    for name in wanted:
        container.upload_blob(name, b'x', metadata={'name': name})
    pages = container.list_blobs(results_per_page=4, include=['metadata', 'uncommittedblobs', 'copy']).by_page()
    seen = [[(each.name, each.metadata['name'], each.size) for each in page] for page in pages]
    equal([len(page) for page in seen], [4, 4, 4, 3])
    equal([each for page in seen for each in page], [(name, name, 1) for name in wanted])
    equal(len(list(container.list_blobs(name_starts_with='two/0'))), 7)
    walked = list(container.walk_blobs())
    seen = [(each.name, isinstance(each, BlobPrefix)) for each in walked]
    equal(seen, [('one/', True), ('two/', True), ('zero', False)])
    equal([each.name for each in container.walk_blobs('one/0', delimiter='/')], wanted[:7])


@check('copies a blob of the account')
def copies():
    container = new_container()
    source = container.get_blob_client('source ä')
    source.upload_blob(bytes_of(MIB), metadata={'from': 'here'})
    target = container.get_blob_client('target')
    copied = target.start_copy_from_url(source.url)
    equal(copied['copy_status'], 'success')
    equal(target.download_blob().readall(), bytes_of(MIB))
    seen = target.get_blob_properties()
    equal([seen.metadata, seen.copy.status], [{'from': 'here'}, 'success'])
    refused(
        412,
        'SourceConditionNotMet',
        lambda: target.start_copy_from_url(
            source.url, source_etag=seen.etag, source_match_condition=MatchConditions.IfNotModified
        ),
    )
    refused(409, 'NoPendingCopyOperation', lambda: target.abort_copy(copied['copy_id']))


@check('deletes, and finds nothing behind it')
def deletes():
    blob = new_container().get_blob_client('gone')
    blob.upload_blob(b'x')
    assert blob.exists()
    blob.delete_blob(delete_snapshots='include')
    assert not blob.exists()
    for call in (blob.delete_blob, blob.get_blob_properties, blob.download_blob, blob.get_block_list):
        refused(404, 'BlobNotFound', call)


@check('deletes many blobs at once, and is told about each of them')
def deletes_many():
    container = new_container()
    names = ['a', 'dir/b c', 'ü+%25#', 'd']
    for name in names:
        container.upload_blob(name, b'x')
    answers = container.delete_blobs(*names[:3], 'missing', raise_on_any_failure=False)
    equal([answer.status_code for answer in answers], [202, 202, 202, 404])
    equal([blob.name for blob in container.list_blobs()], ['d'])
    container.delete_blobs({'name': 'd', 'etag': '"0x1"', 'match_condition': MatchConditions.IfModified})
    equal(list(container.list_blobs()), [])


run()
