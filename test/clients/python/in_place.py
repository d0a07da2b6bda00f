import hashlib
import threading

from azure.core.exceptions import HttpResponseError
from azure.storage.blob import BlobType, SequenceNumberAction

from harness import check, equal, new_container, refused, run

PAGE = 512


@check('appends blocks, at positions and up to a size')
def appends():
    blob = new_container().get_blob_client('log')
    blob.create_append_blob(metadata={'a': 'b'})
    first = blob.append_block(b'first ')
    equal((first['blob_append_offset'], first['blob_committed_block_count']), ('0', 1))
    second = blob.append_block(b'second', appendpos_condition=6, maxsize_condition=12)
    equal((second['blob_append_offset'], second['blob_committed_block_count']), ('6', 2))
    refused(412, 'AppendPositionConditionNotMet', lambda: blob.append_block(b'x', appendpos_condition=6))
    refused(412, 'MaxBlobSizeConditionNotMet', lambda: blob.append_block(b'x', maxsize_condition=12))
    equal(blob.download_blob().readall(), b'first second')
    found = blob.get_blob_properties()
    equal((found.blob_type, found.append_blob_committed_block_count, found.metadata), (BlobType.AppendBlob, 2, {'a': 'b'}))


@check('uploads an append blob in blocks, and appends a stream to it')
def append_upload():
    blob = new_container().get_blob_client('log')
    content = bytes(range(256)) * 20_000
    blob.upload_blob(content, blob_type='AppendBlob')
    blob.upload_blob(iter([b'one ', b'two']), blob_type='AppendBlob', length=7)
    equal(hashlib.md5(blob.download_blob().readall()).hexdigest(), hashlib.md5(content + b'one two').hexdigest())
    blob.upload_blob(b'new', blob_type='AppendBlob', overwrite=True)
    equal(blob.download_blob().readall(), b'new')


@check('seals an append blob, and a copy of it is sealed')
def seals():
    container = new_container()
    blob = container.get_blob_client('log')
    blob.create_append_blob()
    blob.append_block(b'all')
    blob.seal_append_blob()
    refused(409, 'BlobIsSealed', lambda: blob.append_block(b'more'))
    copy = container.get_blob_client('copy')
    copy.start_copy_from_url(blob.url)
    refused(409, 'BlobIsSealed', lambda: copy.append_block(b'more'))
    equal(copy.download_blob().readall(), b'all')


@check('appends by eight threads, of which none overwrites another')
def append_threads():
    container = new_container()
    container.get_blob_client('log').create_append_blob()
    offsets = []

    def append(number):
        blob = container.get_blob_client('log')
        for at in range(10):
            answer = blob.append_block(f'{number}:{at};'.encode())
            offsets.append((int(answer['blob_append_offset']), f'{number}:{at};'))

    threads = [threading.Thread(target=append, args=(number,)) for number in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    expected = ''.join(text for _, text in sorted(offsets))
    equal((len(offsets), container.get_blob_client('log').download_blob().readall().decode()), (80, expected))


@check('writes, clears and lists pages, and resizes')
def pages():
    blob = new_container().get_blob_client('disk.vhd')
    blob.create_page_blob(8 * PAGE)
    blob.upload_page(b'a' * 2 * PAGE, 0, 2 * PAGE)
    blob.upload_page(b'b' * PAGE, 4 * PAGE, PAGE)
    blob.clear_page(0, PAGE)
    ranges, _ = blob.get_page_ranges()
    equal([(each['start'], each['end']) for each in ranges], [(PAGE, 2 * PAGE - 1), (4 * PAGE, 5 * PAGE - 1)])
    zeros = b'\0' * PAGE
    equal(blob.download_blob().readall(), zeros + b'a' * PAGE + 2 * zeros + b'b' * PAGE + 3 * zeros)
    blob.resize_blob(3 * PAGE)
    blob.resize_blob(8 * PAGE)
    equal(blob.download_blob().readall(), zeros + b'a' * PAGE + 6 * zeros)
    refused(416, 'InvalidPageRange', lambda: blob.upload_page(b'a' * PAGE, 8 * PAGE, PAGE))


@check('compares sequence numbers')
def sequence_numbers():
    blob = new_container().get_blob_client('disk')
    blob.create_page_blob(PAGE, sequence_number=3)
    blob.set_sequence_number(SequenceNumberAction.Increment)
    equal(blob.get_blob_properties().page_blob_sequence_number, 4)
    blob.set_sequence_number(SequenceNumberAction.Max, '2')
    equal(blob.get_blob_properties().page_blob_sequence_number, 4)
    blob.upload_page(b'a' * PAGE, 0, PAGE, if_sequence_number_lte=4)
    write = lambda: blob.upload_page(b'b' * PAGE, 0, PAGE, if_sequence_number_lt=4)
    refused(412, 'SequenceNumberConditionNotMet', write)
    equal(blob.download_blob().readall(), b'a' * PAGE)


@check('compares a page blob with its snapshots')
def page_snapshots():
    container = new_container()
    blob = container.get_blob_client('disk')
    blob.create_page_blob(16 * PAGE)
    blob.upload_page(b'a' * 4 * PAGE, 0, 4 * PAGE)
    first = blob.create_snapshot()['snapshot']
    blob.upload_page(b'b' * PAGE, PAGE, PAGE)
    blob.clear_page(2 * PAGE, PAGE)
    second = blob.create_snapshot()['snapshot']
    blob.upload_page(b'c' * PAGE, 8 * PAGE, PAGE)

    def changed(client, since):
        written, cleared = client.get_page_ranges(previous_snapshot_diff=since)
        return [[each['start'] // PAGE for each in some] for some in (written, cleared)]

    equal(changed(blob, first), [[1, 8], [2]])
    equal(changed(blob, second), [[8], []])
    equal(changed(container.get_blob_client('disk', snapshot=second), first), [[1], [2]])
    old = container.get_blob_client('disk', snapshot=first)
    equal(old.download_blob().readall(), b'a' * 4 * PAGE + b'\0' * 12 * PAGE)
    container.get_blob_client('disk', snapshot=first).delete_blob()
    equal(changed(blob, second), [[8], []])
    try:
        changed(blob, first)
        raise AssertionError('a snapshot that is gone was compared')
    except HttpResponseError as error:
        equal(error.response.headers['x-ms-error-code'], 'PreviousSnapshotNotFound')


@check('uploads a page blob, and leaves out its pages of zeros')
def page_upload():
    blob = new_container().get_blob_client('disk')
    content = b'a' * 8_192 + b'\0' * (9 * 2**20 - 16_384) + b'z' * 8_192
    blob.upload_blob(content, blob_type='PageBlob')
    equal(hashlib.md5(blob.download_blob().readall()).hexdigest(), hashlib.md5(content).hexdigest())
    equal(blob.get_blob_properties().blob_type, BlobType.PageBlob)


run()
